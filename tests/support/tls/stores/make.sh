#!/usr/bin/env bash
# Makes the key stores in this folder from the PEM files beside it, with openssl and the JDK's keytool. The password of
# every store is secret1; that of the key in other-key.jks is secret2.
set -euo pipefail
cd "$(dirname "$0")"
rm -f -- *.jks *.p12 *.jceks
tool() { keytool -noprompt -storepass secret1 "$@" 2>/dev/null; }
into_jks() { tool -importkeystore -srckeystore "$1" -srcstorepass secret1 -destkeystore "$2" -deststoretype JKS "${@:3}"; }
for one in broker client; do
  openssl pkcs12 -export -in ../$one.pem -certfile ../authority.pem -name $one -passout pass:secret1 -out $one.p12
  into_jks $one.p12 $one.jks
done
tool -importkeystore -srckeystore broker.p12 -srcstorepass secret1 -destkeystore java.p12 -deststoretype PKCS12
into_jks client.p12 other-key.jks -srcalias client -destkeypass secret2
for kind in JKS PKCS12; do
  end=$([ $kind = JKS ] && echo jks || echo p12)
  tool -importcert -alias authority -file ../authority.pem -storetype $kind -keystore trust.$end
  tool -genkeypair -alias old -dname CN=old -keyalg EC -validity 1 -startdate -10d -storetype $kind -keypass secret1 -keystore expired.$end
  # Several entries: an RSA key and an EC key beside a trusted certificate.
  tool -genkeypair -alias second -dname CN=localhost -keyalg RSA -validity 3650 -storetype $kind -keypass secret1 -keystore several.$end
  tool -genkeypair -alias third -dname CN=localhost -keyalg EC -validity 3650 -storetype $kind -keypass secret1 -keystore several.$end
  tool -importcert -alias authority -file ../authority.pem -storetype $kind -keystore several.$end
  # A store without entries.
  tool -importcert -alias gone -file ../authority.pem -storetype $kind -keystore nothing.$end
  tool -delete -alias gone -keystore nothing.$end
done
openssl pkcs12 -export -nokeys -in ../authority.pem -passout pass:secret1 -out openssl-trust.p12
tool -genseckey -alias aes -keyalg AES -keysize 128 -storetype JCEKS -keystore other.jceks
