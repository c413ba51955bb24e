#!/bin/sh
# Creates the certificates of the fuzz target `certificate_validation`: two roots, an authority below one, a
# cross-certificate, a circle, leaves, revocation lists, a request. The keys are discarded.
set -eu
out=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

cat >ca.ext <<'X'
basicConstraints=critical,CA:TRUE
keyUsage=critical,keyCertSign,cRLSign
subjectKeyIdentifier=hash
authorityKeyIdentifier=keyid
X
cat >leaf.ext <<'X'
basicConstraints=critical,CA:FALSE
keyUsage=critical,digitalSignature,nonRepudiation
extendedKeyUsage=serverAuth,clientAuth
subjectAltName=URI:urn:test:peer,DNS:peer.example,IP:10.0.0.1
subjectKeyIdentifier=hash
authorityKeyIdentifier=keyid
X
request() {
    openssl ecparam -name prime256v1 -genkey -noout -out "$1.key"
    openssl req -new -key "$1.key" -subj "/CN=$1/O=Test" -out "$1.csr"
}
root() { openssl x509 -req -in "$1.csr" -signkey "$1.key" -days 36500 -extfile "${2:-ca.ext}" -out "$1.pem" -set_serial "$3"; }
# issue NAME ISSUER EXTENSIONS SERIAL OUT
issue() { openssl x509 -req -in "$1.csr" -CA "$2.pem" -CAkey "$2.key" -days 36500 -extfile "$3" -set_serial "$4" -out "$5.pem"; }

for name in root other sub a b leaf leaf_of_loop self_signed; do request "$name"; done
root root ca.ext 1; root other ca.ext 2; root a ca.ext 3; root b ca.ext 4; root self_signed leaf.ext 5
issue sub root ca.ext 6 sub; issue root other ca.ext 7 cross
issue a b ca.ext 8 loop_a; issue b a ca.ext 9 loop_b
issue leaf sub leaf.ext 10 leaf; issue leaf_of_loop a leaf.ext 11 leaf_of_loop
for name in root sub cross loop_a loop_b leaf leaf_of_loop self_signed; do
    openssl x509 -in "$name.pem" -outform DER -out "$out/$name.der"
done
for name in root sub; do
    : >index.txt; echo 01 >crlnumber
    [ "$name" = root ] || printf 'R\t21260101000000Z\t290601000000Z\t0A\tunknown\t/CN=leaf\n' >index.txt
    printf '[ca]\ndefault_ca=d\n[d]\ndatabase=index.txt\ncrlnumber=crlnumber\ndefault_md=sha256\ncrl_extensions=e\n[e]\nauthorityKeyIdentifier=keyid\n' >ca.cnf
    openssl ca -gencrl -config ca.cnf -keyfile "$name.key" -cert "$name.pem" -crldays 36500 -out "$name.crl.pem"
    openssl crl -in "$name.crl.pem" -outform DER -out "$out/$name.crl"
done
openssl req -new -key leaf.key -subj '/CN=leaf/O=Test' -addext 'subjectAltName=URI:urn:test:peer' -outform DER -out "$out/leaf.csr"
