#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tinygrad against NumPy: it writes a kernel for each step of a computation, as PTX (DEV=CUDA:PTX) or for NVRTC (DEV=CUDA), and calls the
driver's interface through ctypes.

    tinygrad_check.py        in a process whose CUDA is the device in question; python_suite.py runs it
"""
import os

import numpy
from tinygrad import Device, Tensor, TinyJit, dtypes, nn

from compare import Comparisons

all_of = Comparisons()
random = numpy.random.RandomState(5)


def pair(*shape):
    values = random.uniform(-2, 2, shape).astype(numpy.float32)
    return Tensor(values), values


def elementwise():
    for kind in (dtypes.int8, dtypes.uint8, dtypes.int16, dtypes.int32, dtypes.int64, dtypes.float16, dtypes.float32, dtypes.float64):
        name = str(kind).rsplit(".", maxsplit=1)[-1]
        one, other = random.randint(1, 60, (2, 333))
        got = (Tensor(one, dtype=kind) * 2 - Tensor(other, dtype=kind)).numpy()
        all_of.same(f"{name} arithmetic", got, (one * 2 - other).astype(got.dtype))
        all_of.same(f"{name} comparison", (Tensor(one, dtype=kind) < Tensor(other, dtype=kind)).numpy(), one < other)
    one, other = random.randint(1, 60, (2, 333))
    all_of.same("bits", ((Tensor(one) << 3) ^ (Tensor(other) >> 1) & 7).numpy(), (one << 3) ^ (other >> 1) & 7)
    all_of.same("quotients", (Tensor(one - 30) // Tensor(other)).numpy(), (one - 30) // other)
    x, v = pair(500)
    for function in ("sin", "exp", "tanh", "floor", "trunc"):
        all_of.same(function, getattr(x, function)().numpy(), getattr(numpy, function)(v), 1e-5)
    all_of.same("log", (x.abs() + 0.5).log().numpy(), numpy.log(numpy.abs(v) + 0.5), 1e-5)


def shapes():
    x, v = pair(33, 65)
    y, w = pair(65, 17)
    all_of.same("matrices", (x @ y).numpy(), v @ w, 1e-4)
    half = (x.half() @ y.half()).numpy()
    all_of.same("matrices of halves", half, v.astype(numpy.float16) @ w.astype(numpy.float16), 2e-2)
    all_of.same("sums", x.sum(axis=0).numpy(), v.sum(axis=0), 1e-4)
    all_of.same("greatest", x.max(axis=1).numpy(), v.max(axis=1))
    all_of.same("where the greatest is", x.argmax(axis=1).numpy(), v.argmax(axis=1))
    e = numpy.exp(v - v.max(axis=1, keepdims=True))
    all_of.same("softmax", x.softmax(axis=1).numpy(), e / e.sum(axis=1, keepdims=True), 1e-5)
    all_of.same("running sums", Tensor.arange(1500).cumsum().numpy(), numpy.arange(1500).cumsum())
    all_of.same("sorted", x[0].sort()[0].numpy(), numpy.sort(v[0]))
    all_of.same("turned and cut", x.permute(1, 0)[3:50:3].numpy(), v.T[3:50:3])
    all_of.same("padded", x.pad(((1, 2), (3, 0))).numpy(), numpy.pad(v, ((1, 2), (3, 0))))
    picks = random.randint(0, 33, 20)
    all_of.same("gathered", x[Tensor(picks)].numpy(), v[picks])


def networks():
    x, v = pair(2, 3, 9, 9)
    w, u = pair(4, 3, 3, 3)
    padded = numpy.pad(v, ((0, 0), (0, 0), (1, 1), (1, 1)))
    want = sum(numpy.einsum("nchw,oc->nohw", padded[:, :, i:i + 9, j:j + 9], u[:, :, i, j]) for i in range(3) for j in range(3))
    all_of.same("convolution", x.conv2d(w, padding=1).numpy(), want, 1e-4)
    all_of.same("pooling", x.max_pool2d((3, 3)).numpy(), v.reshape(2, 3, 3, 3, 3, 3).max(axis=(3, 5)))
    a, b = pair(20, 5)
    grad = (a * a).sum().gradient(a)[0]
    all_of.same("gradient", grad.numpy(), 2 * b, 1e-5)
    layer = nn.LayerNorm(5)
    centred = b - b.mean(axis=1, keepdims=True)
    all_of.same("layer norm", layer(a).numpy(), centred / numpy.sqrt(b.var(axis=1, keepdims=True) + 1e-5), 1e-4)

    # The third call on is one CUDA graph.
    @TinyJit
    def step(z):
        return ((z.sin() * 2 + 1).sum(axis=0) @ Tensor.ones(8, 3)).realize()

    for i in range(5):
        z, q = pair(6, 8)
        all_of.same(f"call {i} of a step that is kept", step(z.realize()).numpy(), (numpy.sin(q) * 2 + 1).sum(axis=0) @ numpy.ones((8, 3)), 1e-4)


print("on", Device.DEFAULT, os.environ.get("DEV", ""))
assert Device.DEFAULT.startswith("CUDA"), "not on CUDA"
elementwise()
shapes()
networks()
all_of.end()
