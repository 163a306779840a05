// Page: the one web page, web/index.html, which the build puts into the executable.
//
// It needs nothing but itself and the API of its own origin, and its Content-Security-Policy holds
// it to that: it names the one script that may run by its hash.
#pragma once

#include "api/routes/exchange.hpp"

#include <string_view>

namespace muster::api {

// Defined by the build (cmake/embed.cmake): the text, the hash of it, and that of its script as a
// policy has it ("sha256-…").
extern const std::string_view kPage;
extern const std::string_view kPageHash;
extern const std::string_view kPageScriptHash;

bool is_page(const Url& url);

// Does this client of `/` want to look at a page? Not one that asks for JSON alone.
bool wants_page(const Exchange& exchange);

// 200 with the page, or 304 when the client has it.
kj::Promise<void> send_page(Exchange& exchange);

}  // namespace muster::api
