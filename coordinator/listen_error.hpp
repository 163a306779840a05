// Explains why an address can't be listened on and what to do about it.
#pragma once

#include "base/result.hpp"

#include <kj/exception.h>

#include <string>

namespace muster::coordinator {

Error listen_error(const std::string& flag, const std::string& address, const kj::Exception& e);

}  // namespace muster::coordinator
