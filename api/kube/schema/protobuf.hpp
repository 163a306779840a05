// Protobuf: converts objects between JSON and Kubernetes' protobuf, in which most programs written
// in Go send and ask for them.
//
// The frame is "k8s\0", then a message with the version, the kind and the object; field numbers are
// in api/openapi/. What a field means is decided on its JSON form, so that both forms of a request
// have the same answer. As in Kubernetes' types, empty strings and the zero of a `plain` field are
// absent values. Unknown field numbers are skipped, as usual in protobuf.
#pragma once

#include "api/kube/schema/api_types.hpp"
#include "base/result.hpp"
#include "base/text/json.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace muster::api {

constexpr const char* kProtobufType = "application/vnd.kubernetes.protobuf";
constexpr const char* kProtobufWatchType = "application/vnd.kubernetes.protobuf;stream=watch";

// The JSON text of the object in the frame.
Result<std::string> protobuf_to_json(std::string_view framed);

// The frame of an object, or of a list of objects. Nothing: objects of its kind are never sent as
// protobuf (a Table, those of muster's own API). Values of a wrong type are left out.
std::optional<std::string> json_to_protobuf(const Json& object);

// A list that is made item by item.
class ProtobufList {
 public:
  // `kind`, `api_version`: of its items.
  ProtobufList(std::string_view api_version, std::string_view kind);
  void add(const Json& item);
  size_t bytes() const { return items_.size(); }
  // The frame of the list.
  std::string framed(const Json& metadata) const;

 private:
  const std::string api_version_, kind_;
  const ApiType& type_;
  std::string items_;
};

// An event of a watch: its length in four bytes, the highest first, and a WatchEvent.
std::string protobuf_event(std::string_view type, std::string_view framed_object);

}  // namespace muster::api
