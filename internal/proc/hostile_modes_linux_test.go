package proc_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/grapnelhq/grapnel/internal/wire"
)

// hostileModes are the programs that attack their host before a session begins.
func hostileModes() map[string]func() {
	return map[string]func(){
		// Listens, and prints its argument, in which SOCKET is the socket.
		"line": func() {
			defer listenUnix().Close() //nolint:errcheck // it ends
			fmt.Println(strings.ReplaceAll(os.Args[3], "SOCKET", socketPath()))
			block()
		},
		"tcp":       func() { serveTCP(listenTCP()) },
		"tcp-child": tcpChild,
		"tcp-deaf":  func() { printTCP(listenTCP()); block() },
		"tls":       serveTLS,
		"print-on":  func() { after(serve, printOn) },
	}
}

func listenUnix() net.Listener { return listen("unix", socketPath()) }

func listenTCP() net.Listener { return listen("tcp", "127.0.0.1:0") }

func listen(network, addr string) net.Listener {
	l, err := (&net.ListenConfig{}).Listen(context.Background(), network, addr)
	if err != nil {
		panic(err)
	}
	return l
}

func printTCP(l net.Listener) { fmt.Printf("1|1|tcp|%s|grpc|\n", l.Addr()) }

// serveTCP serves the session protocol on a loopback address.
func serveTCP(l net.Listener, options ...wire.ServerOption) {
	server := wire.NewServer(append(options, wire.ServerOptions(0)...)...)
	wire.Register(server, handler{}, nil)
	printTCP(l)
	_ = server.Serve(l)
}

// tcpChild has a child serve, and prints what it prints.
func tcpChild() {
	cmd := exec.CommandContext(context.Background(), os.Args[0], modeArg, "tcp")
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	_ = cmd.Run()
}

// serveTLS shows one certificate and answers with the key of another.
func serveTLS() {
	shown, own := selfSigned(), selfSigned()
	l := listenUnix()
	fmt.Printf("1|1|unix|%s|grpc|%s\n", socketPath(), base64.RawStdEncoding.EncodeToString(shown.Certificate[0]))
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		_ = tls.Server(conn, &tls.Config{Certificates: []tls.Certificate{own}, NextProtos: []string{"h2"}}).HandshakeContext(context.Background())
	}
}

func selfSigned() tls.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{"localhost"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, BasicConstraintsValid: true, IsCA: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		panic(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// printOn prints over the connection until 64 MiB have gone.
func printOn(_, _ *os.File) {
	chunk := bytes.Repeat([]byte("p"), 1<<20)
	for range 64 {
		_, _ = os.Stdout.Write(chunk)
	}
}
