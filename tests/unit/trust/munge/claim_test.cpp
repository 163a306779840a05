// Claim: the payload of a credential, and which payloads are refused.
#include "trust/munge/claim.hpp"

#include "trust/munge/credential.hpp"

#include <gtest/gtest.h>

#include <string>

namespace muster::munge {
namespace {

const std::string kNonce = "00112233445566778899aabbccddeeff";

TEST(Claim, RoundTrips) {
  const Claim claim{{"0123456789abcdef", "fedcba9876543210"}, kNonce};
  EXPECT_EQ(claim.text(), "muster 0123456789abcdef fedcba9876543210 " + kNonce);
  const auto read = Claim::parse(claim.text());
  ASSERT_TRUE(read);
  EXPECT_EQ(read->audience, claim.audience);
  EXPECT_EQ(read->nonce, kNonce);
}

TEST(Claim, RejectsMalformedText) {
  const std::string good = "muster 01 02 " + kNonce;
  ASSERT_TRUE(Claim::parse(good));
  for (const std::string& bad :
       {std::string(), std::string("muster"), std::string("muster 01 02"),
        "muster 01 02 " + kNonce.substr(1), good + "0", good + " ", " " + good, good + "\n",
        good + std::string(1, '\0'), "slurm 01 02 " + kNonce, "muster  02 " + kNonce,
        "muster 01  " + kNonce, "muster 01 02  " + kNonce, "MUSTER 01 02 " + kNonce,
        "muster 0x 02 " + kNonce, "muster 01 02 " + kNonce.substr(2) + "FF", good + " 03"})
    EXPECT_FALSE(Claim::parse(bad)) << "`" << bad << "`";
}

// If libmunge is not installed, the same error says so.
TEST(Credential, IsUnavailableWithoutMunged) {
  const auto made = encode("/no/such/socket", 0, "x");
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().code, Errc::unavailable);
  EXPECT_FALSE(made.error().message.empty());
  EXPECT_EQ(decode("/no/such/socket", "MUNGE:x:").error().code, Errc::unavailable);
}

}  // namespace
}  // namespace muster::munge
