/* SPDX-License-Identifier: ISC */

/*
 * Where each kind of program looks for trust, for whoever makes the
 * environment of a sandbox: box on a machine, k8sd in a pod.
 *
 *	V(name, value)
 */

#ifndef TRUSTENV_H
#define TRUSTENV_H

#define TRUST_VARIABLES(V, bundle, ca) \
	V("SSL_CERT_FILE", bundle)		/* OpenSSL, Go, Ruby */	\
	V("CURL_CA_BUNDLE", bundle) \
	V("GIT_SSL_CAINFO", bundle) \
	V("REQUESTS_CA_BUNDLE", bundle)		/* Python */		\
	V("PIP_CERT", bundle) \
	V("HTTPLIB2_CA_CERTS", bundle) \
	V("GRPC_DEFAULT_SSL_ROOTS_FILE_PATH", bundle) /* but Go, Java */ \
	V("AWS_CA_BUNDLE", bundle) \
	V("CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE", bundle) /* gcloud */	\
	V("HEX_CACERTS_PATH", bundle)		/* Elixir, Erlang */	\
	V("NIX_SSL_CERT_FILE", bundle)		/* OpenSSL of Nix */	\
	V("CARGO_HTTP_CAINFO", bundle) \
	V("NODE_EXTRA_CA_CERTS", ca)		/* beside its own */	\
	V("DENO_CERT", ca)

#define TRUST_JAVA_VARIABLE	"JAVA_TOOL_OPTIONS"
#define TRUST_JAVA(store) \
	"-Djavax.net.ssl.trustStore=" store " " \
	"-Djavax.net.ssl.trustStorePassword=changeit"

#endif
