// Site: TLS to servers that are not muster's, with certificates from an authority of the site.
//
// Unlike in the cluster (link.hpp), a server has its own name: kj::TlsContext::wrapClient gets the
// host of its URL, a name or an IP address, and the certificate must be for it. TLS 1.2 will do.
#pragma once

#include "trust/tls/certificates.hpp"

#include <kj/compat/tls.h>

#include <optional>
#include <string>

namespace muster::tls {

// `own`: the client's certificate, if it has one. `authorities`: one or more certificates in PEM
// format; empty: those that the system trusts. Throws a kj::Exception if a PEM text is invalid.
kj::Own<kj::TlsContext> site_context(const std::optional<KeyPair>& own,
                                     const std::string& authorities);

// Why a connection through such a context failed, if TLS is the reason: "its certificate is not
// trusted: hostname mismatch".
std::optional<std::string> explained_of_site(const kj::Exception& exception);

}  // namespace muster::tls
