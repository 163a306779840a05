// Expansion: $(NAME) in the command line and the environment of a container (job-semantics 1.4).
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace muster::core {

// Replaces each $(NAME) by find(NAME), and $$ by $. A name that find does not know stays as
// written. nullopt: the result would be longer than `max`.
std::optional<std::string> expand(
    std::string_view text,
    const std::function<std::optional<std::string_view>(const std::string& name)>& find,
    size_t max);

// The text that expand() makes `text` of, whatever is in it.
std::string unexpanded(std::string_view text);

}  // namespace muster::core
