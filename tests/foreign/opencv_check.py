#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""OpenCV's functions on its OpenCL device: a line for each, with what came out. same_output.py compares a local run with a remote one.

OpenCV chooses kernels by what the device says, builds them from its own sources with long lists of options, keeps buffers and sub-buffers
of them, and maps them. A function that OpenCV finished on the processor, because its kernel did not work, is named.
"""
import os
import sys
import zlib

# OpenCV reads these when it is loaded.
os.environ["OPENCV_OPENCL_DEVICE"] = ":CPU:"
os.environ["OPENCV_OPENCL_CACHE_ENABLE"] = "0"
try:
    import cv2
    import numpy
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

random = numpy.random.RandomState(1)
COLOUR = random.randint(0, 256, (120, 160, 3), numpy.uint8)
GREY = cv2.cvtColor(COLOUR, cv2.COLOR_BGR2GRAY)
FLOATS = random.rand(64, 64).astype(numpy.float32)
SQUARE = numpy.ones((5, 5), numpy.uint8)
on_device = cv2.UMat


def functions():
    colour, grey, floats = on_device(COLOUR), on_device(GREY), on_device(FLOATS)
    turned = on_device(FLOATS.T.copy())
    yield "gaussian", lambda: cv2.GaussianBlur(colour, (7, 7), 1.5)
    yield "median", lambda: cv2.medianBlur(colour, 5)
    yield "bilateral", lambda: cv2.bilateralFilter(grey, 7, 50, 50)
    yield "curvature", lambda: cv2.Laplacian(grey, cv2.CV_16S, ksize=3)  # Not Canny, whose kernel gives this or that, locally too.
    yield "sobel", lambda: cv2.Sobel(grey, cv2.CV_16S, 1, 0)
    yield "enlarged", lambda: cv2.resize(colour, (250, 170), interpolation=cv2.INTER_LINEAR)
    yield "reduced", lambda: cv2.resize(colour, (50, 40), interpolation=cv2.INTER_AREA)
    yield "warped", lambda: cv2.warpAffine(colour, numpy.float32([[1.1, .2, 3], [.1, .9, 5]]), (160, 120))
    yield "hue", lambda: cv2.cvtColor(colour, cv2.COLOR_BGR2HSV)
    yield "lab", lambda: cv2.cvtColor(colour, cv2.COLOR_BGR2Lab)
    yield "eroded", lambda: cv2.erode(colour, SQUARE)
    yield "gradient", lambda: cv2.morphologyEx(grey, cv2.MORPH_GRADIENT, SQUARE)
    yield "histogram", lambda: cv2.calcHist([grey], [0], None, [256], [0, 256])
    yield "equalised", lambda: cv2.createCLAHE(2.0, (8, 8)).apply(grey)
    yield "integral", lambda: cv2.integral(grey)
    yield "fourier", lambda: cv2.dft(floats, flags=cv2.DFT_COMPLEX_OUTPUT)
    yield "product", lambda: cv2.gemm(floats, turned, 1.0, floats, 0.5)
    yield "matched", lambda: cv2.matchTemplate(grey, on_device(GREY[50:70, 60:90].copy()), cv2.TM_CCOEFF_NORMED)
    yield "extremes", lambda: numpy.array(cv2.minMaxLoc(grey)[:2])
    yield "sum", lambda: numpy.array(cv2.sumElems(colour))
    yield "power", lambda: cv2.pow(floats, 2.5)
    yield "angle", lambda: cv2.phase(floats, turned)
    yield "mixed", lambda: cv2.addWeighted(colour, .3, colour, .6, 2)
    yield "mirrored", lambda: cv2.flip(colour, 1)
    yield "part", lambda: cv2.blur(cv2.UMat(colour, (20, 90), (30, 140)), (5, 5))
    yield "planes", lambda: cv2.split(colour)
    yield "pyramid", lambda: cv2.pyrUp(cv2.pyrDown(colour))
    yield "flow", lambda: cv2.calcOpticalFlowFarneback(grey, on_device(numpy.roll(GREY, 2, 1)), None, .5, 2, 9, 2, 5, 1.1, 0)
    yield "moving", lambda: cv2.createBackgroundSubtractorMOG2().apply(colour)
    # HoughLines is left out: its kernels overrun a buffer on some processors, without a server too ("double free or corruption").
    yield "corners", lambda: cv2.cornerHarris(grey, 2, 3, .04)


def text(value):
    value = numpy.ascontiguousarray(value.get() if isinstance(value, cv2.UMat) else value)
    return f"{value.dtype}{list(value.shape)} {zlib.crc32(value.tobytes()):08x} mean {value.mean():.6g}"


def main():
    cv2.setNumThreads(1)
    cv2.setRNGSeed(1)
    cv2.ocl.setUseOpenCL(True)
    if not cv2.ocl.useOpenCL():
        print("OpenCV finds no OpenCL device")
        return 1
    print("on", cv2.ocl.Device.getDefault().name())
    for name, function in functions():
        result = function()
        print(name, *map(text, result if isinstance(result, (tuple, list)) else [result]), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
