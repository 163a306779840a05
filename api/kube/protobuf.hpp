// Protobuf: bodies that newer clients write for some requests (`kubectl create job NAME`), as JSON.
//
// Kubernetes' frame: "k8s\0", then a message that names version and kind and holds the object.
// Which number is which field stands in api/openapi/. A field that muster knows by name only
// (volumes, probes…) can't be read this way and is an error that names it; numbers that are not
// known there are left out, as every reader of protobuf does.
#pragma once

#include "base/result.hpp"

#include <string>
#include <string_view>

namespace muster::api {

constexpr std::string_view kProtobufType = "application/vnd.kubernetes.protobuf";

// JSON text of the object in the frame.
Result<std::string> protobuf_to_json(std::string_view framed);

}  // namespace muster::api
