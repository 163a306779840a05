// Page: the one web page, web/index.html, which the build puts into the executable.
//
// It needs nothing but itself and the API of its own origin, and its Content-Security-Policy holds
// it to that.
#pragma once

#include "api/exchange.hpp"

#include <string_view>

namespace muster::api {

// Defined by the build (cmake/embed.cmake): the text, and the hash of it.
extern const std::string_view kPage;
extern const std::string_view kPageHash;

// Does this client of `/` want to look at a page? Not one that asks for JSON alone.
bool wants_page(const Exchange& exchange);

// 200 with the page, or 304 when the client has it.
kj::Promise<void> send_page(Exchange& exchange);

}  // namespace muster::api
