package sandbox

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestRuntimes runs programs of common runtimes that do what plugins do: serve a
// unix socket, use threads, start and signal children, ask for their processors.
func TestRuntimes(t *testing.T) {
	t.Parallel()
	needLandlock(t)

	tests := []struct {
		name, program string
		args          []string
		read          []string
	}{
		{"shell with jobs", "/bin/bash", []string{"-c", `set -m; sleep 600 & kill %1; wait %1; ulimit -n 64; (ulimit -n; true) | cat; nice true; echo works`}, nil},
		{"Python", "/usr/bin/python3", []string{"-c", python}, []string{"/etc/python3", "/etc/python3.11"}},
		{"gRPC in Python", "/usr/bin/python3", []string{"-c", grpc}, []string{"/etc/python3", "/etc/python3.11"}},
		{"Node", "/usr/bin/node", []string{"-e", node}, nil},
		{"Java", "/usr/bin/java", []string{"-XX:+UseSerialGC", "-Xmx64m", "Main.java"}, []string{"/etc/java-17-openjdk", "/etc/alternatives"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			if os.Getenv("GRAPNEL_LONG") == "" && tt.name != "shell with jobs" && tt.name != "Python" {
				t.Skip("GRAPNEL_LONG=1 runs it")
			}
			program, err := filepath.EvalSymlinks(tt.program)
			if err != nil {
				t.Skip(err)
			}
			var p Policy
			for _, path := range tt.read {
				if _, err := os.Stat(path); err == nil {
					p.Read = append(p.Read, path)
				}
			}
			if tt.name == "Java" {
				dir := t.TempDir()
				if err := os.WriteFile(dir+"/Main.java", []byte(java), 0o600); err != nil {
					t.Fatal(err)
				}
				p.Read = append(p.Read, dir)
				tt.args[2] = dir + "/Main.java"
			}
			if tt.name != "Java" { // which takes some seconds each time
				if out, err := exec.CommandContext(t.Context(), program, tt.args...).CombinedOutput(); err != nil {
					t.Skipf("it does not work here without the sandbox: %v: %s", err, out)
				}
			}
			if got := runConfined(t, p, true, program, tt.args...); got.code != 0 || !strings.HasSuffix(got.output, "works") {
				t.Errorf("status %d, output %s", got.code, got.output)
			}
		})
	}
}

const python = `
import asyncio, os, resource, signal, socket, subprocess, sys, threading
from multiprocessing import Pipe

a, b = Pipe()
a.send("x"); assert b.recv() == "x"
t = threading.Thread(target=lambda: None); t.start(); t.join()
os.sched_setaffinity(0, os.sched_getaffinity(0))
resource.setrlimit(resource.RLIMIT_CORE, resource.getrlimit(resource.RLIMIT_CORE))
child = subprocess.Popen(["sleep", "600"], start_new_session=True)
os.killpg(child.pid, signal.SIGTERM); assert child.wait() == -signal.SIGTERM

async def main():
    out = await (await asyncio.create_subprocess_exec("echo", "hi", stdout=subprocess.PIPE)).communicate()
    assert out[0] == b"hi\n"
    path = os.path.join(os.environ.get("TMPDIR", "/tmp"), "socket-%d" % os.getpid())
    server = await asyncio.start_unix_server(lambda r, w: None, path)
    server.close()
    os.unlink(path)

asyncio.run(main())
print("works")
`

const grpc = `
import grpc, os
from concurrent import futures
server = grpc.server(futures.ThreadPoolExecutor(max_workers=2))
path = os.path.join(os.environ.get("TMPDIR", "/tmp"), "grpc-%d" % os.getpid())
assert server.add_insecure_port("unix:" + path)
server.start()
server.stop(None).wait()
print("works")
`

const node = `
const {Worker} = require('worker_threads'), cp = require('child_process'), net = require('net'), os = require('os')
os.cpus(); os.availableParallelism(); os.setPriority(os.getPriority())
const path = require('path').join(process.env.TMPDIR || '/tmp', 'node-' + process.pid)
const server = net.createServer().listen(path, () => {
  server.close()
  new Worker('1', {eval: true}).on('exit', () => {
    const child = cp.spawn('sleep', ['600'], {stdio: ['pipe', 'pipe', 'ipc'].slice(0, 2)})
    child.on('exit', (code, signal) => console.log(signal === 'SIGTERM' ? 'works' : 'failed'))
    child.kill()
  })
})
`

const java = `
import java.net.*; import java.nio.channels.*; import java.nio.file.*; import java.util.concurrent.*;
public class Main {
  public static void main(String[] args) throws Exception {
    var pool = Executors.newFixedThreadPool(4);
    if (pool.submit(() -> 1).get() != 1) throw new Exception();
    pool.shutdown();
    var dir = System.getenv("TMPDIR");
    var path = Path.of(dir == null ? "/tmp" : dir, "java-" + ProcessHandle.current().pid());
    try (var server = ServerSocketChannel.open(StandardProtocolFamily.UNIX)) { server.bind(UnixDomainSocketAddress.of(path)); }
    Files.delete(path);
    var child = new ProcessBuilder("sleep", "600").start();
    child.destroy();
    if (child.waitFor() != 143) throw new Exception();
    System.out.println("works");
  }
}
`
