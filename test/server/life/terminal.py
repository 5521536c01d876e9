"""Runs a program on a terminal of its own, as its session's first process: terminal.py FILE HOW COMMAND...

When FILE appears, HOW happens: `interrupt`, somebody presses Ctrl+C; `close`, the terminal is closed. Prints what the program
printed, and ends with its exit code, or with 128 and the number of the signal that has ended it.
"""
import os
import pty
import sys
import time

file, how, *command = sys.argv[1:]
pid, master = pty.fork()
if pid == 0:
    os.execvp(command[0], command)
os.set_blocking(master, False)
is_done = False
while master is not None:
    try:
        sys.stdout.write(os.read(master, 4096).decode())
        sys.stdout.flush()
    except BlockingIOError:
        time.sleep(0.02)
    except OSError:
        break
    if os.path.exists(file) and not is_done:
        is_done = True
        if how == "interrupt":
            os.write(master, b"\x03")
        else:
            os.close(master)
            master = None
status = os.waitpid(pid, 0)[1]
os._exit(os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status))
