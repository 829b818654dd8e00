//! Scripts that mean harm, or are merely wrong.

use std::time::Duration;

use hermes_core::{Event, ResultStatus};
use hermes_testkit::peers::wait_until;

use super::{Stage, is_alive};

/// Speaks to the socket without the module's help.
const RAW: &str = "\
import hermes_tools, json, socket
def raw(data):
    with socket.socket(socket.AF_UNIX) as line:
        line.connect(hermes_tools._way_back['socket'])
        try:
            line.sendall(data)
            line.shutdown(socket.SHUT_WR)
        except OSError:
            pass
        try:
            answer = b''.join(iter(lambda: line.recv(65536), b''))
        except OSError as error:
            return str(error)
        return json.loads(answer)['error'] if answer else 'nothing'
def call(tool, token=hermes_tools._token, **arguments):
    return json.dumps({'tool': tool, 'token': token, 'arguments': arguments}).encode() + b'\\n'
";

#[tokio::test]
async fn nonsense_at_the_socket_is_answered_and_harms_nobody() {
    let stage = Stage::new();
    stage.write("a.txt", "still here\n");
    let code = format!(
        "{RAW}\
         print(raw(b'\\x00\\xff garbage\\n'))\n\
         print(raw(b''))\n\
         print(raw(b'[1, 2]\\n'))\n\
         print(raw(b'{{' * 100000 + b'\\n'))\n\
         print(raw(call('read_file', token='0' * 32, path='a.txt')))\n\
         print(raw(call('read_file', token='', path='a.txt')))\n\
         print(raw(b'x' * (5 << 20)))\n\
         print(raw(call('execute_code', code='print(1)')))\n\
         print(raw(call('process', action='list')))\n\
         print(raw(call('terminal', command='sleep 9', background=True)))\n\
         print(raw(call('read_file', path=['a'])))\n\
         lines = [socket.socket(socket.AF_UNIX) for _ in range(20)]\n\
         for line in lines: line.connect(hermes_tools._way_back['socket'])\n\
         print(hermes_tools.read_file('a.txt'))\n"
    );
    let text = stage.prints(&code).await;
    for (line, words) in text.lines().zip([
        "not a call",
        "not a call",
        "not a call",
        "not a call",
        "the token is wrong",
        "the token is wrong",
        "longer than",
        "cannot call `execute_code`",
        "cannot call `process`",
        "`background` of `terminal` is not for scripts",
        "do not fit",
        "still here",
    ]) {
        assert!(line.contains(words), "{words:?} in {line:?} of {text}");
    }
}

#[tokio::test]
async fn a_script_has_so_many_calls_and_no_more() {
    let mut stage = Stage::new();
    stage.settings.calls_max = 3;
    let text = stage
        .prints(
            "from hermes_tools import *\nfrom hermes_tools import ToolError\n\
             for n in range(5):\n\
             \x20   try:\n\
             \x20       write_file('%d.txt' % n, 'x')\n\
             \x20   except ToolError as error:\n\
             \x20       print(error)\n",
        )
        .await;
    assert_eq!(
        text.matches("has made its 3 tool calls").count(),
        2,
        "{text}"
    );
    assert!(text.contains("3 tool calls,"), "{text}");
    assert!(stage.path("2.txt").exists() && !stage.path("3.txt").exists());
}

#[tokio::test]
async fn threads_and_children_call_at_once_and_each_gets_its_own_answer() {
    let stage = Stage::new();
    for n in 0..12 {
        stage.write(&format!("{n}.txt"), &format!("file {n}\n"));
    }
    let text = stage
        .prints(
            "import os, multiprocessing\n\
             from concurrent.futures import ThreadPoolExecutor\n\
             from hermes_tools import read_file, terminal\n\
             def look(n): return read_file('%d.txt' % n)\n\
             with ThreadPoolExecutor(12) as pool:\n\
             \x20   assert list(pool.map(look, range(12))) == ['file %d\\n' % n for n in range(12)]\n\
             with multiprocessing.get_context('fork').Pool(3) as pool:\n\
             \x20   assert pool.map(look, range(6)) == ['file %d\\n' % n for n in range(6)]\n\
             with ThreadPoolExecutor(4) as pool:\n\
             \x20   print(sorted(pool.map(terminal, ['echo %d' % n for n in range(4)])))\n",
        )
        .await;
    assert!(text.starts_with(r"['0\n', '1\n', '2\n', '3\n']"), "{text}");
}

#[tokio::test]
async fn a_flood_of_output_keeps_its_beginning_and_its_end() {
    let stage = Stage::new();
    let text = stage
        .prints("import sys\nprint('first')\nfor n in range(20000): print('flood ' * 50)\nprint('last')")
        .await;
    assert!(text.len() < 60_000, "{}", text.len());
    assert!(text.starts_with("first\n") && text.contains("\nlast\n[exit code 0;"));
    assert!(text.contains("bytes left out"));
}

#[tokio::test]
async fn a_script_without_end_is_killed_when_its_time_is_up() {
    let mut stage = Stage::new();
    stage.settings.timeout = Duration::from_secs(1);
    let code =
        "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nwhile True: print('more')";
    let ended = stage.run(code).await;
    assert_eq!(ended.status, ResultStatus::Failed);
    assert!(
        ended.text.contains("killed when its 1 s were over"),
        "{ended:?}"
    );
}

#[tokio::test]
async fn everything_a_script_started_is_killed_with_it() {
    let stage = Stage::new();
    let code = "import os, signal, time\n\
                signal.signal(signal.SIGTERM, signal.SIG_IGN)\n\
                def name(n): return '%d.pid' % n\n\
                for n in range(20):\n\
                \x20   if os.fork() == 0:\n\
                \x20       if n % 2: os.setsid()\n\
                \x20       open('part%d' % n, 'w').write(str(os.getpid()))\n\
                \x20       os.rename('part%d' % n, name(n))\n\
                \x20       time.sleep(600)\n\
                while not all(os.path.exists(name(n)) for n in range(20)): time.sleep(0.01)\n\
                while True: print('all up', flush=True)\n";
    let are_up = |event: &Event| matches!(event, Event::CallProgress { text, .. } if text.lines().any(|line| line == "all up"));
    let ended = stage.run_until(code, are_up).await;
    assert_eq!(ended.status, ResultStatus::OutcomeUnknown, "{ended:?}");
    for n in 0..20 {
        let pid = stage.read(&format!("{n}.pid"));
        wait_until("the child is gone", || !is_alive(&pid));
    }
}

#[tokio::test]
async fn nobody_calls_after_the_script_has_ended() {
    let stage = Stage::new();
    stage
        .prints(
            "import os, time, hermes_tools\n\
             parent = os.getpid()\n\
             if os.fork() == 0:\n\
             \x20   os.setsid()\n\
             \x20   null = os.open(os.devnull, os.O_RDWR)\n\
             \x20   os.dup2(null, 1); os.dup2(null, 2)\n\
             \x20   while os.getppid() == parent or os.path.exists(hermes_tools._way_back['socket']): time.sleep(0.01)\n\
             \x20   try:\n\
             \x20       hermes_tools.write_file('late.txt', 'x')\n\
             \x20   except Exception as error:\n\
             \x20       open('outcome.part', 'w').write(repr(error))\n\
             \x20       os.rename('outcome.part', 'outcome')\n\
             \x20   os._exit(0)\n\
             print('over')\n",
        )
        .await;
    wait_until("the child has tried", || stage.path("outcome").exists());
    assert!(
        stage.read("outcome").contains("Error"),
        "{}",
        stage.read("outcome")
    );
    assert!(!stage.path("late.txt").exists());
}

#[tokio::test]
async fn an_interrupt_kills_the_script_and_the_command_it_waits_for() {
    let stage = Stage::new();
    let code = "import os\nfrom hermes_tools import terminal\n\
                open('script', 'w').write(str(os.getpid()))\n\
                print('up', flush=True)\nterminal('echo $$ > command; echo waiting; exec sleep 600')\n";
    let is_waiting = |event: &Event| matches!(event, Event::CallProgress { text, .. } if text.lines().any(|line| line == "waiting"));
    let ended = stage.run_until(code, is_waiting).await;
    assert_eq!(ended.status, ResultStatus::OutcomeUnknown, "{ended:?}");
    for file in ["script", "command"] {
        let pid = stage.read(file).trim().to_owned();
        assert!(!pid.is_empty(), "{file}");
        wait_until("it is gone", || !is_alive(&pid));
    }
}

#[tokio::test]
async fn a_module_of_the_project_does_not_take_the_place_of_ours() {
    let stage = Stage::new();
    for name in ["json.py", "socket.py", "hermes_tools.py", "shlex.py"] {
        stage.write(name, "raise Exception('the wrong module')\n");
    }
    stage.write("a.txt", "word\n");
    let text = stage
        .prints("from hermes_tools import read_file\nprint(read_file('a.txt'))")
        .await;
    assert!(text.starts_with("word\n"), "{text}");
}
