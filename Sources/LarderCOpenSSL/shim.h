// The library that speaks TLS, release 3.
#ifndef LARDER_OPENSSL_SHIM_H
#define LARDER_OPENSSL_SHIM_H

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>

#endif
