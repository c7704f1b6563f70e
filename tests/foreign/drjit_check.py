#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Dr.Jit against NumPy: it traces Python, writes PTX itself and loads it, and brings its reductions and scans as PTX.

    drjit_check.py           in a process whose CUDA is the device in question; python_suite.py runs it
"""
import math

import drjit as dr
import numpy
from drjit.cuda import Array2f, Array3f, Bool, Float, Float64, Int, PCG32, Texture2f, UInt32, UInt64
from drjit.cuda.ad import Float as Differentiable

from compare import Comparisons

all_of = Comparisons()
SIZE = 3001


def arithmetic():
    x = numpy.linspace(-6, 6, SIZE, dtype=numpy.float32)
    for name, ours, theirs in (("sin", dr.sin, numpy.sin), ("cos", dr.cos, numpy.cos), ("tanh", dr.tanh, numpy.tanh), ("exp", dr.exp, numpy.exp),
                               ("atan", dr.atan, numpy.arctan), ("floor", dr.floor, numpy.floor), ("erf", dr.erf, None)):
        result = ours(Float(x)).numpy()
        if theirs is None:
            all_of.same(name, result, [math.erf(value) for value in x], 1e-5)
        else:
            all_of.same(name, result, theirs(x), 2e-6 if name != "exp" else 1e-4)
    double = Float64(x.astype(numpy.float64))
    all_of.same("log of doubles", dr.log(dr.abs(double) + 1).numpy(), numpy.log(numpy.abs(x.astype(numpy.float64)) + 1), 1e-14)
    n = numpy.arange(SIZE, dtype=numpy.uint32)
    k = UInt32(n)
    all_of.same("popcnt", dr.popcnt(k * 2654435761).numpy(), [bin((int(v) * 2654435761) & 0xffffffff).count("1") for v in n])
    all_of.same("lzcnt", dr.lzcnt(k).numpy(), [32 - int(v).bit_length() for v in n])
    all_of.same("mulhi", dr.mul_hi(k * 77777777, UInt32(99999999)).numpy(), [(int(v) * 77777777 % 2**32 * 99999999) >> 32 for v in n])
    all_of.same("wide", (UInt64(k) * 10**12 // 7).numpy(), n.astype(numpy.uint64) * 10**12 // 7)
    all_of.same("signed division", ((Int(k) - 1500) // 7).numpy(), numpy.trunc((n.astype(numpy.int32) - 1500) / 7).astype(numpy.int32))


def reductions():
    n = numpy.arange(1, SIZE + 1, dtype=numpy.uint32)
    k = UInt32(n)
    all_of.same("sum", dr.sum(k).numpy(), [n.sum(dtype=numpy.uint32)])
    all_of.same("max", dr.max((k * 7919) % 3001).numpy(), [((n * 7919) % 3001).max()])
    all_of.same("min", dr.min((k * 7919) % 3001 + 5).numpy(), [((n * 7919) % 3001 + 5).min()])
    all_of.same("prefix sum", dr.prefix_sum(k).numpy(), numpy.cumsum(n) - n)
    all_of.same("inclusive", dr.cumsum(k).numpy(), numpy.cumsum(n))
    all_of.same("compress", dr.compress(k % 7 == 3).numpy(), numpy.flatnonzero(n % 7 == 3))
    all_of.same("count", dr.count(k > 1000).numpy(), [(n > 1000).sum()])
    all_of.same("any", [bool(dr.any(k == 3001)[0]), bool(dr.any(k == 4000)[0]), bool(dr.all(Bool(k > 0))[0])], [True, False, True])
    all_of.same("dot", dr.dot(Float(k), Float(k)).numpy(), [(n.astype(numpy.float64)**2).sum()], 1e-5)
    all_of.same("blocks", dr.block_sum(dr.arange(UInt32, 1, 3001), 8).numpy(), n[:3000].reshape(-1, 8).sum(1))


def memory():
    n = numpy.arange(SIZE, dtype=numpy.uint32)
    k = UInt32(n)
    table = dr.zeros(UInt32, 16)
    dr.scatter_add(table, k, k % 16)
    all_of.same("scatter_add", table.numpy(), numpy.bincount(n % 16, n, 16).astype(numpy.uint32))
    all_of.same("gather", dr.gather(UInt32, k * 3, (k * 5) % SIZE).numpy(), (n * 5 % SIZE) * 3)
    most = dr.zeros(UInt32, 8)
    dr.scatter_reduce(dr.ReduceOp.Max, most, (k * 7919) % 3001, k % 8)
    all_of.same("scatter_max", most.numpy(), [((n * 7919) % 3001)[n % 8 == i].max() for i in range(8)])
    all_of.same("norm", dr.norm(Array3f(Float(k), 2, 3)).numpy(), numpy.sqrt(n.astype(numpy.float64)**2 + 13), 1e-6)
    texture = Texture2f([4, 4], 1)
    texture.set_value(dr.arange(Float, 16))
    at = (numpy.arange(16, dtype=numpy.float32) % 4 + 0.5) / 4, (numpy.arange(16, dtype=numpy.float32) // 4 + 0.5) / 4
    all_of.same("texture", texture.eval(Array2f(Float(at[0]), Float(at[1])))[0].numpy(), numpy.arange(16))


@dr.syntax
def collatz(n):
    i = UInt32(n)
    steps = UInt32(0)
    while i > 1:
        i = dr.select(i & 1 == 0, i >> 1, 3 * i + 1)
        steps += 1
    return steps


def programs():
    def steps(value):
        count = 0
        while value > 1:
            value = value // 2 if value % 2 == 0 else 3 * value + 1
            count += 1
        return count

    all_of.same("a loop whose lanes differ", collatz(dr.arange(UInt32, 1, 700)).numpy(), [steps(v) for v in range(1, 700)])
    x = Differentiable([1, 2, 3])
    dr.enable_grad(x)
    dr.backward(dr.exp(x) * x)
    v = numpy.array([1, 2, 3], dtype=numpy.float32)
    all_of.same("gradient", dr.grad(x).numpy(), numpy.exp(v) * (1 + v), 1e-5)
    state, inc, want = 0, (1 << 1) | 1, []
    mask = 2**64 - 1  # PCG32's reference, for its first stream.
    state = (state * 0x5851f42d4c957f2d + inc) & mask
    state = ((state + 42) * 0x5851f42d4c957f2d + inc) & mask
    for _ in range(5):
        old, state = state, (state * 0x5851f42d4c957f2d + inc) & mask
        mixed, turn = ((old >> 18 ^ old) >> 27) & 0xffffffff, old >> 59
        want.append((mixed >> turn | mixed << (-turn & 31)) & 0xffffffff)
    random = PCG32(size=1, initstate=42, initseq=1)
    all_of.same("random numbers", [int(random.next_uint32()[0]) for _ in range(5)], want)


arithmetic()
reductions()
memory()
programs()
all_of.end()
