"""The public names, and where each is; a module is loaded when it is first asked."""

from nplm.formats.arpa.arpa_files import read_arpa as read_arpa
from nplm.formats.arpa.arpa_files import write_arpa as write_arpa
from nplm.formats.arpa.text_fst import write_fst as write_fst
from nplm.formats.binary.writing import save_binary as save_binary
from nplm.formats.class_files import read_class_definitions as read_class_definitions
from nplm.formats.class_files import read_classes as read_classes
from nplm.formats.class_files import write_class_definitions as write_class_definitions
from nplm.formats.class_files import write_classes as write_classes
from nplm.formats.counts.count_files import CountFiles as CountFiles
from nplm.formats.counts.count_files import read_counts as read_counts
from nplm.formats.counts.count_files import write_counts as write_counts
from nplm.formats.counts.count_tables import CountTables as CountTables
from nplm.formats.counts.estimation import Estimated as Estimated
from nplm.formats.counts.estimation import count_ngrams as count_ngrams
from nplm.formats.counts.estimation import estimate_arpa as estimate_arpa
from nplm.formats.counts.estimation import estimate_binary as estimate_binary
from nplm.formats.loading import load_binary as load_binary
from nplm.formats.onnx import write_onnx as write_onnx
from nplm.formats.vectors import read_vectors as read_vectors
from nplm.formats.vectors import write_vectors as write_vectors
