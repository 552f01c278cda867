"""Download a file, from a server that gives out a folder: ``fetch.py FOLDER CACHE``."""

import hashlib
import http.server
import sys
import threading
from functools import partial
from pathlib import Path

from nplm.datasets._remote_files import RemoteFile, read_file

folder, cache = sys.argv[1:]
data = (Path(folder) / "corpus.txt").read_bytes()
handler = partial(http.server.SimpleHTTPRequestHandler, directory=folder)
server = http.server.HTTPServer(("127.0.0.1", 0), handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
url = f"http://127.0.0.1:{server.server_port}/corpus.txt"
file = RemoteFile("corpus.txt", url, hashlib.sha256(data).hexdigest())
assert read_file(file, cache, True) == data
server.shutdown()
