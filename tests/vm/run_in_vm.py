#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a command inside a virtual machine that sees this machine's files.

    run_in_vm.py [--kernel-root DIR] [--module NAME]... [--memory MIB] [--timeout SECONDS] [--each PROGRAM]...
                 -- program args...

The machine boots the distribution's kernel with a small first file system, mounts this machine's root read-only through
9p with a layer of memory above it, and runs the command there as root, in the folder in which this program was
started. What the command writes is gone afterwards. Exit status: the command's; 77 when the machine cannot be started
here (what is missing is said), 98 when it did not come to an end.

--each: the command is run for every PROGRAM, which is its last argument, one after the other in one machine.
HAWSER_VM_SHARE=N: for every N-th of them, others for each commit.

--kernel-root: a folder with boot/vmlinuz-* and lib/modules/* (an unpacked linux-image package). Default: /, then
build/vm/kernel, into which the distribution's package is unpacked if it can be had (apt-get download).
"""
import argparse
import glob
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import share  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODULES = ["virtio_pci", "9pnet_virtio", "9p", "overlay"]
EXIT_LINE = "hawser-vm-exit: "

# What is written anywhere stays in memory. /tmp is the host's, too: the checkout may be there.
INIT = """#!/bin/busybox sh
/bin/busybox mkdir -p /proc /sys /dev /below /above /top
/bin/busybox mount -t proc proc /proc
/bin/busybox mount -t devtmpfs dev /dev
for module in $(/bin/busybox cat /modules); do /bin/busybox insmod "/lib/$module" 2>/dev/null; done
/bin/busybox mount -t 9p -o trans=virtio,version=9p2000.L,ro,cache=loose,msize=1048576 host /below || echo "hawser-vm: no 9p"
/bin/busybox mount -t tmpfs -o size=80% memory /above
/bin/busybox mkdir -p /above/files /above/work
/bin/busybox mount -t overlay -o lowerdir=/below,upperdir=/above/files,workdir=/above/work over /top
for place in proc sys dev tmp run; do /bin/busybox mkdir -p /top/$place; done
/bin/busybox mount -t tmpfs run /top/run
/bin/busybox mount -t sysfs sys /top/sys
/bin/busybox mount --move /dev /top/dev
/bin/busybox mkdir -p /top/dev/shm /top/dev/pts
/bin/busybox mount -t tmpfs shm /top/dev/shm
/bin/busybox mount --move /proc /top/proc
/bin/busybox cp /command /top/run/hawser-command
/bin/busybox ifconfig lo 127.0.0.1 up
exec /bin/busybox switch_root /top /bin/sh /run/hawser-command
"""


def fail(text):
    print(f"run_in_vm: {text}", file=sys.stderr)
    sys.exit(77)


def find_kernel(roots):
    for root in roots:
        for image in sorted(glob.glob(f"{root}/boot/vmlinuz-*"), reverse=True):
            version = image.rsplit("vmlinuz-", 1)[1]
            if os.path.isdir(f"{root}/lib/modules/{version}/kernel"):
                return image, f"{root}/lib/modules/{version}"
    return None


def fetch_kernel(target):
    """The distribution's kernel package, unpacked; needs no root."""
    depends = subprocess.run(["apt-cache", "depends", "linux-image-amd64"], capture_output=True, text=True)
    names = re.findall(r"Depends: (linux-image-\S+)", depends.stdout)
    if not names:
        return
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        got = subprocess.run(["apt-get", "-o", "APT::Sandbox::User=root", "download", names[0]], cwd=folder,
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        packages = glob.glob(folder + "/*.deb")
        if got.returncode == 0 and packages:
            target.mkdir(parents=True, exist_ok=True)
            subprocess.run(["dpkg", "-x", packages[0], str(target)], check=True)


def needed_modules(folder, wanted):
    """Files of the wanted modules and of what they need, in the order of loading."""
    paths = {}
    for path in pathlib.Path(folder, "kernel").rglob("*.ko*"):
        paths[path.name.split(".")[0].replace("-", "_")] = path
    order = []

    def add(name):
        path = paths.get(name.replace("-", "_"))
        if path is None or path in order:
            return  # Built in.
        info = subprocess.run(["modinfo", "-F", "depends", str(path)], capture_output=True, text=True, check=True)
        for other in filter(None, info.stdout.strip().split(",")):
            add(other)
        order.append(path)

    for name in wanted:
        add(name)
    return order


def build_initramfs(work, modules, command):
    tree = pathlib.Path(work, "tree")
    for folder in ("bin", "lib"):
        (tree / folder).mkdir(parents=True)
    shutil.copy(shutil.which("busybox"), tree / "bin/busybox")
    for module in modules:
        data = module.read_bytes()
        if module.suffix == ".xz":
            data = subprocess.run(["xz", "-dc"], input=data, stdout=subprocess.PIPE, check=True).stdout
        elif module.suffix == ".zst":
            data = subprocess.run(["zstd", "-dc"], input=data, stdout=subprocess.PIPE, check=True).stdout
        (tree / "lib" / (module.name.split(".")[0] + ".ko")).write_bytes(data)
    (tree / "modules").write_text("\n".join(m.name.split(".")[0] + ".ko" for m in modules) + "\n")
    (tree / "command").write_text(command)
    (tree / "init").write_text(INIT)
    (tree / "init").chmod(0o755)
    names = "\n".join(str(p.relative_to(tree)) for p in sorted(tree.rglob("*"))) + "\n"
    image = pathlib.Path(work, "initramfs")
    with open(image, "wb") as out:
        subprocess.run(["cpio", "-o", "-H", "newc", "--quiet"], cwd=tree, input=names.encode(), stdout=out, check=True)
    return image


def run_all(commands):
    """Lines for a shell that run them one after the other; $status is then that of one that failed, or 77 if one was
    skipped and none failed."""
    lines = ["status=0"]
    for command in commands:
        lines += [f"{shlex.join(command)}; now=$?", '[ $now = 0 ] || { [ $now = 77 ] && [ $status != 0 ]; } || status=$now']
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernel-root")
    parser.add_argument("--module", action="append", default=[])
    parser.add_argument("--memory", type=int, default=3072, help="MiB")
    parser.add_argument("--timeout", type=int, default=300)
    parser.add_argument("--each", action="append", default=[], metavar="PROGRAM")
    parser.add_argument("--verbose", action="store_true", help="show what the kernel says")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    args = parser.parse_args()
    program = args.command[1:] if args.command[:1] == ["--"] else args.command
    if not program:
        parser.error("no command")

    for tool in ("qemu-system-x86_64", "busybox", "cpio", "modinfo"):
        if shutil.which(tool) is None:
            fail(f"there is no {tool} here (packages qemu-system-x86, busybox-static, cpio, kmod)")
    own = ROOT / "build/vm/kernel"
    roots = [args.kernel_root] if args.kernel_root else ["/", str(own)]
    kernel = find_kernel(roots)
    if kernel is None and not args.kernel_root:
        fetch_kernel(own)
        kernel = find_kernel(roots)
    if kernel is None:
        fail("there is no kernel with modules here (package linux-image-amd64), and none could be fetched")

    environment = {k: v for k, v in os.environ.items() if k.startswith(("HAWSER_", "OCL_", "POCL_", "LD_", "CUDA_"))}
    lines = ["export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/run"]
    lines += [f"export {k}={shlex.quote(v)}" for k, v in environment.items()]
    number = share.number("HAWSER_VM_SHARE")
    each = share.part(args.each, share.commit(), number)
    if len(each) < len(args.each):
        print(share.left_out(len(args.each) - len(each), len(args.each), "programs in a virtual machine", "HAWSER_VM_SHARE",
                             number))
    lines += [f"cd {shlex.quote(os.getcwd())}", *run_all([program + [one] for one in each] or [program])]
    lines += [f'echo "{EXIT_LINE}$status"', "sync", "echo 1 > /proc/sys/kernel/sysrq; echo o > /proc/sysrq-trigger; sleep 60"]
    with tempfile.TemporaryDirectory() as work:
        modules = needed_modules(kernel[1], MODULES + args.module)
        initramfs = build_initramfs(work, modules, "\n".join(lines) + "\n")
        # Emulated unless asked otherwise: it works everywhere, also in a machine that is itself virtual.
        accelerators = ["-accel", os.environ.get("HAWSER_VM_ACCEL", "tcg,thread=multi")]
        processor = ["-cpu", "max"]
        command = ["qemu-system-x86_64", "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
                   "-machine", "q35", *accelerators, *processor, "-smp", "2", "-m", str(args.memory), "-serial", "stdio",
                   "-kernel", kernel[0], "-initrd", str(initramfs),
                   "-append", f"console=ttyS0 panic=-1 {'' if args.verbose else 'quiet loglevel=3'}",
                   "-virtfs", "local,path=/,mount_tag=host,security_model=none,readonly=on,multidevs=remap"]
        machine = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                   text=True, errors="replace")
        try:
            timer = __import__("threading").Timer(args.timeout, machine.kill)
            timer.start()
            status = None
            for line in machine.stdout:
                line = line.rstrip("\r\n")
                if line.startswith(EXIT_LINE):
                    status = int(line[len(EXIT_LINE):])
                    machine.kill()  # Nothing in it is worth an orderly end.
                    break
                print(line, flush=True)
        finally:
            timer.cancel()
            machine.kill()
            machine.wait()
        if status is None:
            print(f"run_in_vm: the command did not end within {args.timeout} s, or the machine did", file=sys.stderr)
            return 98
        return status


if __name__ == "__main__":
    sys.exit(main())
