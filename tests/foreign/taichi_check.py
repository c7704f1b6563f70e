#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Taichi against NumPy: it compiles Python to PTX with LLVM, keeps a runtime of its own on the device (sparse structures, their memory, random
numbers, assertions), and calls the driver's interface.

    taichi_check.py          in a process whose CUDA is the device in question; python_suite.py runs it
"""
import numpy
import taichi as ti

from compare import Comparisons

all_of = Comparisons()
random = numpy.random.RandomState(5)
ti.init(arch=ti.cuda, enable_fallback=False, offline_cache=False, device_memory_GB=0.25, random_seed=3, log_level=ti.WARN)


def field_of(values, kind):
    field = ti.field(kind, shape=values.shape)
    field.from_numpy(values)
    return field


def elementwise():
    n = 1000
    x = random.uniform(0.1, 4, n).astype(numpy.float32)
    a, out = field_of(x, ti.f32), ti.field(ti.f32, shape=(6, n))

    @ti.kernel
    def functions():
        for i in a:
            v = a[i]
            out[0, i] = ti.sin(v) + ti.cos(v)
            out[1, i] = ti.sqrt(v) * ti.rsqrt(v + 1)
            out[2, i] = ti.exp(-v) + ti.log(v)
            out[3, i] = ti.floor(v) + ti.ceil(v) + ti.round(v * 3)
            out[4, i] = ti.atan2(v, 2.0) + ti.tanh(v)
            out[5, i] = ti.pow(v, 1.7) + ti.min(v, 1.0) + ti.max(v, 2.0)

    functions()
    got = out.to_numpy()
    for row, want in enumerate((numpy.sin(x) + numpy.cos(x), numpy.sqrt(x) / numpy.sqrt(x + 1), numpy.exp(-x) + numpy.log(x),
                                numpy.floor(x) + numpy.ceil(x) + numpy.round(x * 3), numpy.arctan2(x, 2) + numpy.tanh(x),
                                x**1.7 + numpy.minimum(x, 1) + numpy.maximum(x, 2))):
        all_of.same(f"functions {row}", got[row], want, 1e-4)

    for kind, name in ((ti.i8, "int8"), (ti.u16, "uint16"), (ti.i32, "int32"), (ti.u64, "uint64"), (ti.f16, "float16"), (ti.f64, "float64")):
        one, other = (random.randint(1, 10, n).astype(name) for _ in range(2))
        left, right, result = field_of(one, kind), field_of(other, kind), ti.field(kind, shape=n)

        @ti.kernel
        def arithmetic():
            for i in left:
                result[i] = left[i] * right[i] + left[i] - right[i]

        arithmetic()
        all_of.same(name, result.to_numpy(), one * other + one - other)

    words = random.randint(0, 2**31, n).astype(numpy.int32)
    bits, packed = field_of(words, ti.i32), ti.field(ti.i32, shape=(3, n))

    @ti.kernel
    def of_bits():
        for i in bits:
            packed[0, i] = (bits[i] << 3) ^ (bits[i] >> 5) & 0x7f
            packed[1, i] = ti.math.popcnt(bits[i])
            packed[2, i] = ti.math.clz(bits[i])

    of_bits()
    got = packed.to_numpy()
    all_of.same("shifted bits", got[0], (words << 3) ^ (words >> 5) & 0x7f)
    all_of.same("bits that are set", got[1], [bin(word).count("1") for word in words])
    all_of.same("zeros in front", got[2], [32 - int(word).bit_length() for word in words])


def reductions():
    n = 5000
    x = random.randint(-1000, 1000, n).astype(numpy.int32)
    a, bins = field_of(x, ti.i32), ti.field(ti.i32, shape=16)

    @ti.kernel
    def total() -> ti.i32:
        sum = 0
        for i in a:
            sum += a[i]
        return sum

    @ti.kernel
    def extremes() -> ti.types.vector(2, ti.i32):
        low, high = 10000, -10000
        for i in a:
            ti.atomic_min(low, a[i])
            ti.atomic_max(high, a[i])
        return ti.Vector([low, high])

    @ti.kernel
    def histogram():
        for i in a:
            bins[a[i] & 15] += 1

    all_of.same("a sum", total(), x.sum())
    all_of.same("extremes", extremes().to_numpy(), [x.min(), x.max()])
    histogram()
    all_of.same("histogram", bins.to_numpy(), numpy.bincount(x & 15, minlength=16))
    running = field_of(numpy.abs(x[:4096]), ti.i32)
    ti.algorithms.PrefixSumExecutor(4096).run(running)
    all_of.same("running sums", running.to_numpy(), numpy.cumsum(numpy.abs(x[:4096])))
    keys, values = field_of(x[:512], ti.i32), field_of(numpy.arange(512, dtype=numpy.int32), ti.i32)
    ti.algorithms.parallel_sort(keys, values)
    all_of.same("sorted keys", keys.to_numpy(), numpy.sort(x[:512]))
    all_of.same("values beside them", x[values.to_numpy()], numpy.sort(x[:512]))


def matrices():
    n = 64
    m = random.uniform(-1, 1, (n, 3, 3)).astype(numpy.float32)
    a = ti.Matrix.field(3, 3, ti.f32, shape=n)
    a.from_numpy(m)
    products, inverses, back = (ti.Matrix.field(3, 3, ti.f32, shape=n) for _ in range(3))

    @ti.kernel
    def compute():
        for i in a:
            products[i] = a[i] @ a[i].transpose()
            inverses[i] = (products[i] + 2 * ti.Matrix.identity(ti.f32, 3)).inverse()
            u, s, v = ti.svd(a[i])
            back[i] = u @ s @ v.transpose()

    compute()
    squares = m @ m.transpose(0, 2, 1)
    all_of.same("products", products.to_numpy(), squares, 1e-5)
    all_of.same("inverses", inverses.to_numpy(), numpy.linalg.inv(squares + 2 * numpy.eye(3)), 1e-4)
    all_of.same("singular values", back.to_numpy(), m, 1e-3)


def shared_memory():
    n, block, tiles = 512, 64, 8
    x = random.uniform(-1, 1, n).astype(numpy.float32)
    a, b = field_of(x, ti.f32), ti.field(ti.f32, shape=n)

    @ti.kernel
    def interactions():
        ti.loop_config(block_dim=64)
        for i in range(n):
            lane = i % block
            near = ti.simt.block.SharedArray((block,), ti.f32)
            sum = 0.0
            for tile in range(tiles):
                near[lane] = a[tile * block + lane]
                ti.simt.block.sync()
                for k in range(block):
                    sum += ti.abs(a[i] - near[k])
                ti.simt.block.sync()
            b[i] = sum

    @ti.kernel
    def warps():
        ti.loop_config(block_dim=32)
        for i in range(32):
            v = a[i]
            for step in ti.static((16, 8, 4, 2, 1)):
                v += ti.simt.warp.shfl_down_f32(ti.u32(0xffffffff), v, step)
            b[i] = v

    interactions()
    all_of.same("tiles in shared memory", b.to_numpy(), numpy.abs(x[:, None] - x[None, :]).sum(axis=1), 1e-4)
    warps()
    all_of.same("a warp's sum", b[0], x[:32].sum(), 1e-4)


def sparse():
    n = 128
    x, y = ti.field(ti.f32), ti.field(ti.f32)
    block = ti.root.pointer(ti.ij, n // 16)
    block.dense(ti.ij, 16).place(x)
    block.dense(ti.ij, 16).place(y)
    counts = ti.field(ti.i32, shape=2)

    @ti.kernel
    def activate():
        for i in range(16, n - 16):  # No block at the edge: all neighbours are in the field.
            x[i, 16 + (i * i) % (n - 32)] = ti.f32(i + 1)

    @ti.kernel
    def blur():
        ti.block_local(x)  # Shared memory of a size that the module declares.
        for i, j in x:
            sum = 0.0
            for di, dj in ti.static(ti.ndrange((-1, 2), (-1, 2))):
                sum += x[i + di, j + dj]
            y[i, j] = sum

    @ti.kernel
    def count():
        for i, j in x:
            counts[0] += 1
        for i, j in block:
            counts[1] += 1

    activate()
    want = numpy.zeros((n, n), numpy.float32)
    active = numpy.zeros((n // 16, n // 16))
    for i in range(16, n - 16):
        want[i, 16 + (i * i) % (n - 32)] = i + 1
        active[i // 16, (16 + (i * i) % (n - 32)) // 16] = 1
    blocks = int(active.sum())
    all_of.same("what is active", x.to_numpy(), want)
    count()
    all_of.same("how much is active", counts.to_numpy(), [blocks * 256, blocks])
    blur()
    padded = numpy.pad(want, 1)
    sums = sum(padded[i:i + n, j:j + n] for i in range(3) for j in range(3))
    all_of.same("block local", y.to_numpy(), sums * numpy.kron(active, numpy.ones((16, 16))))
    block.deactivate_all()
    counts.fill(0)
    count()
    all_of.same("nothing is active", counts.to_numpy(), [0, 0])

    lists, lengths = ti.field(ti.i32), ti.field(ti.i32, shape=8)
    bucket = ti.root.dense(ti.i, 8).dynamic(ti.j, 256, chunk_size=16)
    bucket.place(lists)

    @ti.kernel
    def append():
        for i in range(400):
            lists[(i * 7) % 8].append(i)

    @ti.kernel
    def measure():
        for i in range(8):
            lengths[i] = lists[i].length()

    append()
    measure()
    all_of.same("lists", lengths.to_numpy(), numpy.bincount([(i * 7) % 8 for i in range(400)], minlength=8))


def gradients():
    n = 100
    v = random.uniform(0.5, 2, n).astype(numpy.float32)
    x, loss = ti.field(ti.f32, shape=n, needs_grad=True), ti.field(ti.f32, shape=(), needs_grad=True)
    x.from_numpy(v)

    @ti.kernel
    def compute():
        for i in x:
            loss[None] += ti.sin(x[i]) * x[i]**2

    with ti.ad.Tape(loss):
        compute()
    all_of.same("loss", loss[None], (numpy.sin(v) * v**2).sum(), 1e-4)
    all_of.same("gradient", x.grad.to_numpy(), numpy.cos(v) * v**2 + 2 * v * numpy.sin(v), 1e-4)


def simulation():
    """Particles that fall in a box, whose momentum goes to a grid and back (the material point method of Taichi's own examples, shortened)."""
    particles, grid, steps, dt = 512, 32, 10, 2e-4
    dx = 1 / grid
    place, speed = ti.Vector.field(2, ti.f64, particles), ti.Vector.field(2, ti.f64, particles)
    momentum, mass = ti.Vector.field(2, ti.f64, (grid, grid)), ti.field(ti.f64, (grid, grid))
    x, v = random.uniform(0.3, 0.6, (particles, 2)), random.uniform(-1, 1, (particles, 2))
    place.from_numpy(x)
    speed.from_numpy(v)

    @ti.kernel
    def substep():
        for i, j in mass:
            momentum[i, j] = [0, 0]
            mass[i, j] = 0
        for p in place:
            base = ti.cast(place[p] * grid - 0.5, ti.i32)
            fx = place[p] * grid - base
            w = [0.5 * (1.5 - fx)**2, 0.75 - (fx - 1)**2, 0.5 * (fx - 0.5)**2]
            for i, j in ti.static(ti.ndrange(3, 3)):
                weight = w[i][0] * w[j][1]
                momentum[base + ti.Vector([i, j])] += weight * speed[p]
                mass[base + ti.Vector([i, j])] += weight
        for i, j in mass:
            if mass[i, j] > 0:
                momentum[i, j] = momentum[i, j] / mass[i, j] + ti.Vector([0, -9.8 * dt])
        for p in place:
            base = ti.cast(place[p] * grid - 0.5, ti.i32)
            fx = place[p] * grid - base
            w = [0.5 * (1.5 - fx)**2, 0.75 - (fx - 1)**2, 0.5 * (fx - 0.5)**2]
            new = ti.Vector([0.0, 0.0], ti.f64)
            for i, j in ti.static(ti.ndrange(3, 3)):
                new += w[i][0] * w[j][1] * momentum[base + ti.Vector([i, j])]
            speed[p] = new
            place[p] += dt * new

    for _ in range(steps):
        substep()
    for _ in range(steps):
        base = (x / dx - 0.5).astype(int)
        fx = x / dx - base
        w = [0.5 * (1.5 - fx)**2, 0.75 - (fx - 1)**2, 0.5 * (fx - 0.5)**2]
        total, weights = numpy.zeros((grid, grid, 2)), numpy.zeros((grid, grid))
        for i in range(3):
            for j in range(3):
                weight = w[i][:, 0] * w[j][:, 1]
                numpy.add.at(total, (base[:, 0] + i, base[:, 1] + j), weight[:, None] * v)
                numpy.add.at(weights, (base[:, 0] + i, base[:, 1] + j), weight)
        at = weights > 0
        total[at] = total[at] / weights[at][:, None] + [0, -9.8 * dt]
        v = sum((w[i][:, 0] * w[j][:, 1])[:, None] * total[base[:, 0] + i, base[:, 1] + j] for i in range(3) for j in range(3))
        x = x + dt * v
    all_of.same("places of particles", place.to_numpy(), x, 1e-5)
    all_of.same("speeds of particles", speed.to_numpy(), v, 1e-4)


def arrays_and_numbers():
    values = random.uniform(-1, 1, (40, 30)).astype(numpy.float32)

    @ti.kernel
    def turn(source: ti.types.ndarray(), target: ti.types.ndarray()):
        for i, j in source:
            target[j, i] = source[i, j] * 2

    turned = numpy.zeros((30, 40), numpy.float32)
    turn(values, turned)  # NumPy's memory goes there and back.
    all_of.same("arrays of the host", turned, values.T * 2)
    source, target = ti.ndarray(ti.f32, (40, 30)), ti.ndarray(ti.f32, (30, 40))
    source.from_numpy(values)
    turn(source, target)
    all_of.same("arrays of the device", target.to_numpy(), values.T * 2)

    drawn = ti.field(ti.f32, shape=20000)

    @ti.kernel
    def draw():
        for i in drawn:
            drawn[i] = ti.random()

    draw()
    got = drawn.to_numpy()
    all_of.same("random numbers' mean", got.mean(), 0.5, 0.02)
    all_of.same("random numbers' spread", got.var(), 1 / 12, 0.01)
    all_of.same("they differ", len(numpy.unique(got)) > 19000, True)


print("on", ti.lang.impl.current_cfg().arch)
elementwise()
reductions()
matrices()
shared_memory()
sparse()
gradients()
simulation()
arrays_and_numbers()
all_of.end()
