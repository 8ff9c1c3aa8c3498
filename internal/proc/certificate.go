package proc

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"time"
)

// certificateHost is the name in both certificates of go-plugin's mutual TLS.
const certificateHost = "localhost"

// certificateLife is how long the host's certificate is valid: it is shown once,
// when the one connection is made.
const certificateLife = 24 * time.Hour

// newCertificate makes the certificate by which the host proves to one start of a
// plugin who it is. The plugin trusts it as a root, so it is its own authority.
func newCertificate() (own tls.Certificate, encoded string, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return own, "", err
	}
	now := time.Now() // the plugin's clock is the system's
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: certificateHost},
		DNSNames:              []string{certificateHost},
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
		NotBefore:             now.Add(-time.Minute),
		NotAfter:              now.Add(certificateLife),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return own, "", err
	}
	encoded = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, encoded, nil
}
