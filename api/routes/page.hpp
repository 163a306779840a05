// Page: the one web page, api/page/index.html, which the build embeds in the executable.
//
// It needs only itself and the API of its own origin, and its Content-Security-Policy enforces
// that: it allows a single script, by its hash.
#pragma once

#include "api/request/exchange.hpp"

#include <string_view>

namespace muster::api {

// Defined by the build (cmake/embed.cmake): the text, its hash, and the hash of its script as a
// policy writes it ("sha256-…").
extern const std::string_view kPage;
extern const std::string_view kPageHash;
extern const std::string_view kPageScriptHash;

bool is_page(const Url& url);

// Whether this client of `/` wants a page: true unless it asks for JSON only.
bool wants_page(const Exchange& exchange);

// Sends 200 with the page, or 304 if the client already has it.
kj::Promise<void> send_page(Exchange& exchange);

}  // namespace muster::api
