"""Runs a program whose stderr cannot be written: unwritable.py HOW FILE COMMAND... ends as COMMAND, in the same process.

HOW is `disk`, a full disk; `pipe`, a full pipe that nobody reads; `reader`, a pipe whose reader has gone; `socket`, a full
socket that nobody reads; `terminal`, a terminal; `terminals`, one for stdout too. Terminals are closed when FILE appears.
"""
import os
import pty
import socket
import sys
import time

how, file, *command = sys.argv[1:]


def fill(fd):
    os.set_blocking(fd, False)
    try:
        while True:
            os.write(fd, b"x" * 4096)
    except BlockingIOError:
        os.set_blocking(fd, True)


def hold_terminal(master, output):
    """Passes on the lines of JSON that the program prints, until the terminal is closed."""
    os.set_blocking(master, False)
    read = b""
    while not os.path.exists(file):
        try:
            read += os.read(master, 4096)
        except BlockingIOError:
            time.sleep(0.02)
        *lines, read = read.split(b"\n")
        for line in lines:
            if line.startswith(b"{"):
                os.write(output, line.strip() + b"\n")
    os._exit(0)


if how == "disk":
    os.dup2(os.open("/dev/full", os.O_WRONLY), 2)
elif how == "pipe":
    reader, writer = os.pipe()
    fill(writer)
    os.set_inheritable(reader, True)
    os.dup2(writer, 2)
elif how == "reader":
    reader, writer = os.pipe()
    os.dup2(writer, 2)
elif how == "socket":
    reader, writer = socket.socketpair()
    fill(writer.fileno())
    os.set_inheritable(reader.fileno(), True)
    os.dup2(writer.fileno(), 2)
else:
    master, slave = pty.openpty()
    if os.fork() == 0:
        os.close(slave)
        hold_terminal(master, os.dup(1) if how == "terminals" else os.open(os.devnull, os.O_WRONLY))
    os.close(master)
    os.dup2(slave, 2)
    if how == "terminals":
        os.dup2(slave, 1)
os.execvp(command[0], command)
