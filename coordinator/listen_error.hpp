// What is wrong with an address that cannot be listened at, in words that say what to do.
#pragma once

#include "base/result.hpp"

#include <kj/exception.h>

#include <string>

namespace muster::coordinator {

Error listen_error(const std::string& flag, const std::string& address, const kj::Exception& e);

}  // namespace muster::coordinator
