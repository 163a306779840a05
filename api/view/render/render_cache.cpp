#include "api/view/render/render_cache.hpp"

#include "api/kube/schema/protobuf.hpp"
#include "base/check.hpp"

namespace muster::api {

void append_watch_event(std::string& out, std::string_view type, std::string_view object,
                        Encoding encoding) {
  if (encoding == Encoding::protobuf) {
    out += protobuf_event(type, object);
    return;
  }
  out += "{\"type\":\"";
  out += type;
  out += "\",\"object\":";
  out += object;
  out += "}\n";
}

std::string encoded(std::string json, Encoding encoding) {
  if (encoding != Encoding::protobuf) return json;
  auto framed = json_to_protobuf(Json::parse(json));
  MUSTER_CHECK(framed, json);
  return std::move(*framed);
}

std::string RenderCache::made(const Shown& shown, Form form, Encoding encoding, bool columns) {
  std::string text;
  renderer_.whole(text, shown, form, columns);
  return encoded(std::move(text), encoding);
}

void RenderCache::append_event(std::string& out, std::string_view type, const Shown& shown,
                               Form form, Encoding encoding, bool columns) {
  const bool removed = type == "DELETED";  // it may be a stub with the version of another change
  if (is_table(form) || shown.kind == Kind::node || removed)
    return append_watch_event(out, type, made(shown, form, encoding, columns), encoding);
  append_watch_event(out, type, kept(shown, form, encoding), encoding);
}

const std::string& RenderCache::kept(const Shown& shown, Form form, Encoding encoding) {
  const Name name{key_of(shown), shown.version, form, encoding, shown.summary};
  auto found = texts_.find(name);
  if (found != texts_.end()) return found->second;
  std::string text = made(shown, form, encoding, false);
  bytes_ += text.size();
  found = texts_.emplace(name, std::move(text)).first;
  order_.push_back(name);
  while (bytes_ > kBytesMax && order_.size() > 1) {
    auto oldest = texts_.find(order_.front());
    bytes_ -= oldest->second.size();
    texts_.erase(oldest);
    order_.pop_front();
  }
  return found->second;
}

}  // namespace muster::api
