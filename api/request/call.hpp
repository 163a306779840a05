// Call: turns a call to the Backend, which answers by a callback, into a promise.
#pragma once

#include "base/result.hpp"

#include <kj/async.h>

#include <functional>
#include <memory>

namespace muster::api {

template <class T = Status>
struct Call {
  kj::Promise<T> promise;
  std::function<void(T)> done;  // call once, on the API thread
};

template <class T = Status>
Call<T> new_call() {
  auto paf = kj::newPromiseAndFulfiller<T>();
  auto fulfiller = std::make_shared<kj::Own<kj::PromiseFulfiller<T>>>(kj::mv(paf.fulfiller));
  return {kj::mv(paf.promise), [fulfiller](T value) { (*fulfiller)->fulfill(kj::mv(value)); }};
}

}  // namespace muster::api
