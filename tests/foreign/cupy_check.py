#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""CuPy (NumPy on CUDA) against NumPy: kernels that it compiles at run time, and CUB's that it brings compiled.

    cupy_check.py            in a process whose CUDA is the device in question; python_suite.py runs it

Prints what differs, and the number of comparisons. Status 1: something differs.
"""
import cupy
import numpy

from compare import Comparisons

INTEGERS = "bhilBHIL"
FLOATS = "efd"
COMPLEX = "FD"
all_of = Comparisons()


def same(what, ours, theirs, exact=True, tolerance=1e-5):
    """Whether CuPy's result is NumPy's."""
    all_of.same(what, cupy.asnumpy(ours), theirs, None if exact else tolerance)


def numbers(shape, dtype, seed=7):
    random = numpy.random.RandomState(seed)
    if dtype in INTEGERS:
        limits = numpy.iinfo(dtype)
        return random.randint(max(limits.min, -1000), min(limits.max, 1000), shape).astype(dtype)
    values = random.uniform(-4, 4, shape)
    return (values + 1j * random.uniform(-4, 4, shape)).astype(dtype) if dtype in COMPLEX else values.astype(dtype)


def reductions():
    # With CUB's kernels and with CuPy's own; short rows, rows of one warp, and one long one.
    for accelerators in ([], ["cub"]):
        cupy._core.set_routine_accelerators(accelerators)
        cupy._core.set_reduction_accelerators(accelerators)
        for dtype in INTEGERS + "fdD":
            for shape, axis in (((2, 3, 4), 2), ((5, 64), 1), ((4, 1000), None), ((40, 30), 0)):
                a = numbers(shape, dtype)
                g = cupy.asarray(a)
                what = f"{dtype} {shape} along {axis}, accelerators {accelerators}"
                if dtype != "D":
                    same("max of " + what, g.max(axis), a.max(axis))
                    same("min of " + what, g.min(axis), a.min(axis))
                    same("argmax of " + what, g.argmax(axis), a.argmax(axis))
                same("sum of " + what, g.sum(axis), a.sum(axis), dtype in INTEGERS, 1e-3)
            same("cumsum of " + what, cupy.asarray(a).cumsum(), a.cumsum(), dtype in INTEGERS, 1e-3)


def elementwise():
    for dtype in INTEGERS:
        a, b = numbers(300, dtype), numbers(300, dtype, 8)
        b[b == 0] = 3
        x, y = cupy.asarray(a), cupy.asarray(b)
        for name in ("add", "subtract", "multiply", "floor_divide", "remainder", "bitwise_and", "maximum", "less"):
            same(f"{name} of {dtype}", getattr(cupy, name)(x, y), getattr(numpy, name)(a, b))
    for dtype in FLOATS + COMPLEX:
        a, b = numbers(300, dtype), numbers(300, dtype, 8)
        x, y = cupy.asarray(a), cupy.asarray(b)
        tolerance = 3e-3 if dtype == "e" else 1e-5
        for name in ("add", "multiply", "true_divide", "power" if dtype in COMPLEX else "hypot"):
            same(f"{name} of {dtype}", getattr(cupy, name)(x, y), getattr(numpy, name)(a, b), False, 10 * tolerance)
        for name in ("sin", "exp", "tanh", "sqrt" if dtype in COMPLEX else "cbrt"):
            same(f"{name} of {dtype}", getattr(cupy, name)(x), getattr(numpy, name)(a), False, tolerance)
    halves = numpy.arange(65536, dtype="H").view("e")
    same("all halves as floats", cupy.asarray(halves).astype("f"), halves.astype("f"), False, 0)
    same("rounding to halves", cupy.asarray(numbers(4096, "f")).astype("e"), numbers(4096, "f").astype("e"))


def order():
    for dtype in "bBhilefd":
        a = numpy.random.RandomState(1).permutation(100 if dtype in "bB" else 600).astype(dtype)
        g = cupy.asarray(a)
        same(f"sort of {dtype}", cupy.sort(g), numpy.sort(a))
        same(f"argsort of {dtype}", cupy.argsort(g), numpy.argsort(a, kind="stable"))
        # Warps whose lanes count on each other without saying so.
        index = cupy.asnumpy(cupy.argpartition(g, 20))
        same(f"argpartition of {dtype}", numpy.sort(a[index[:20]]), numpy.sort(a)[:20])
        same(f"partition of {dtype}", cupy.sort(cupy.partition(g, 20)[:20]), numpy.sort(a)[:20])
    a = numbers((200, 3), "i") % 5
    same("unique", cupy.unique(cupy.asarray(a)), numpy.unique(a))
    same("nonzero", cupy.nonzero(cupy.asarray(a))[0], numpy.nonzero(a)[0])
    same("searchsorted", cupy.searchsorted(cupy.arange(0, 900, 7), cupy.asarray(numbers(100, "i"))),
         numpy.searchsorted(numpy.arange(0, 900, 7), numbers(100, "i")))
    same("bincount", cupy.bincount(cupy.asarray(a.ravel())), numpy.bincount(a.ravel()))


def places():
    a = numbers((20, 30), "d")
    g = cupy.asarray(a)
    rows = numbers(50, "i") % 20
    same("rows by number", g[cupy.asarray(rows)], a[rows])
    same("a mask", g[g > 1], a[a > 1])
    same("steps backwards", g[::-2, 3::4], a[::-2, 3::4])
    same("where", cupy.where(g > 0, g, -g), numpy.where(a > 0, a, -a))
    same("transposed", cupy.ascontiguousarray(g.T), a.T)
    sums = cupy.zeros(20)
    ours = numpy.zeros(20)
    cupy.add.at(sums, cupy.asarray(rows), 1.5)
    numpy.add.at(ours, rows, 1.5)
    same("atomic additions", sums, ours)


def own_kernels():
    a = numbers(1000, "f")
    g = cupy.asarray(a)
    square = cupy.ElementwiseKernel("T x, T y", "T z", "z = (x - y) * (x - y)", "squared_difference")
    same("ElementwiseKernel", square(g, g[::-1]), (a - a[::-1]) ** 2)
    norm = cupy.ReductionKernel("T x", "T y", "x * x", "a + b", "y = sqrt(a)", "0", "norm")
    same("ReductionKernel", norm(g), numpy.sqrt((a.astype("d") ** 2).sum()), False)
    source = r"""
    template <typename T> __global__ void neighbours(const T* in, int* out, int n) {
      const int i = blockIdx.x * blockDim.x + threadIdx.x;
      const int value = i < n ? __ldg(in + i) : 0;
      const int left = __shfl_up_sync(0xffffffffu, value, 1), sum = value + (threadIdx.x % 32 != 0 ? left : 0);
      if (i < n) out[i] = sum;
    }"""
    module = cupy.RawModule(code=source, options=("-std=c++17",),
                            name_expressions=["neighbours<signed char>", "neighbours<unsigned short>"])
    for name, dtype in (("signed char", "b"), ("unsigned short", "H")):
        values = numbers(500, dtype)
        out = cupy.zeros(500, "i")
        module.get_function(f"neighbours<{name}>")((4,), (128,), (cupy.asarray(values), out, numpy.int32(500)))
        left = numpy.where(numpy.arange(500) % 32 != 0, numpy.roll(values.astype("i"), 1), 0)
        same(f"RawModule, {name}", out, values.astype("i") + left)

    @cupy.fuse()
    def fused(x, y):
        return cupy.sum(x * y + 3)
    same("fused", fused(g, g), (a * a + 3).sum(dtype="d"), False, 1e-4)


def streams():
    a = numbers(100000, "d")
    first, second = cupy.cuda.Stream(non_blocking=True), cupy.cuda.Stream()
    g = cupy.asarray(a)
    cupy.cuda.Device().synchronize()
    with first:
        x = g * 2
        done = first.record()
    second.wait_event(done)
    with second:
        y = x + 1
    second.synchronize()
    same("two streams", y, a * 2 + 1)
    with first:
        first.begin_capture()
        z = cupy.exp(g) + 1
        graph = first.end_capture()
    for _ in range(3):
        graph.launch(first)
    first.synchronize()
    same("a captured graph", z, numpy.exp(a) + 1, False)
    with cupy.cuda.using_allocator(cupy.cuda.MemoryAsyncPool().malloc):
        same("the stream-ordered pool", sum(cupy.asarray(a[i::7]).sum() for i in range(7)), a.sum(), False)
    pinned = cupy.cuda.alloc_pinned_memory(a.nbytes)
    host = numpy.frombuffer(pinned, "d", a.size)
    (g + 5).get(out=host)
    same("to pinned memory", host, a + 5)


def main():
    cupy.cuda.Device(0).use()
    print(f"CuPy {cupy.__version__}, {cupy.cuda.runtime.getDeviceProperties(0)['name'].decode()}")
    for part in (elementwise, reductions, order, places, own_kernels, streams):
        before = all_of.count
        part()
        print(f"{part.__name__}: {all_of.count - before} comparisons", flush=True)
    all_of.end()


if __name__ == "__main__":
    main()
