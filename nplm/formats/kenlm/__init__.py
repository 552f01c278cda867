"""Binary files of KenLM: the layouts that its ``build_binary`` writes."""
