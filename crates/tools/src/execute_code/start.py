"""Prepares the interpreter for a script and runs it. `run` came on standard input; the names here are not the script's."""


def prepare(run):
    import os
    import sys
    import types

    if sys.version_info < (3, 8):
        sys.exit("Python 3.8 or newer is needed; this is " + sys.version.split()[0])
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    tools = types.ModuleType("hermes_tools")
    tools.__dict__.update(_token=run["token"], _way_back=run["way_back"])
    exec(compile(run["module"], "<hermes_tools>", "exec"), tools.__dict__)
    sys.modules["hermes_tools"] = tools
    remove_left()
    folders = []
    if "folder" in run["way_back"]:
        os.mkdir(run["way_back"]["folder"], 0o700)
        folders.append(run["way_back"]["folder"])
    if run["strict"]:
        import tempfile

        folders.append(tempfile.mkdtemp(prefix="hermes_exec_", dir="/tmp"))
        os.chdir(folders[-1])
    else:
        sys.path.insert(0, "")
    remove_at_exit(folders)


def remove_left():
    """Removes what scripts left that were killed, once nobody can be using it any more."""
    import glob
    import os
    import shutil
    import time

    for folder in glob.glob("/tmp/hermes_exec_*"):
        try:
            is_old = os.stat(folder).st_mtime < time.time() - 24 * 60 * 60
        except OSError:
            continue
        if is_old:
            shutil.rmtree(folder, ignore_errors=True)


def remove_at_exit(folders):
    import atexit
    import os
    import shutil

    owner = os.getpid()

    def remove():
        # A child of the script that ends does not end the script.
        if os.getpid() == owner:
            for folder in folders:
                shutil.rmtree(folder, ignore_errors=True)

    atexit.register(remove)


def perform(code):
    import linecache
    import sys
    import traceback

    name = "<script>"
    # Lets tracebacks show the lines.
    linecache.cache[name] = (len(code), None, code.splitlines(True), name)
    scope = sys.modules["__main__"].__dict__
    for ours in ("run", "prepare", "remove_left", "remove_at_exit", "perform", "json", "sys"):
        scope.pop(ours, None)
    try:
        exec(compile(code, name, "exec"), scope)
    except Exception as error:
        # The first frame is this one.
        frames = error.__traceback__.tb_next
        traceback.print_exception(type(error), error, frames)
        sys.exit(1)


prepare(run)
perform(run["code"])
