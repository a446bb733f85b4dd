-- SPDX-License-Identifier: BSD-2-Clause
-- For test_wireshark.py: lets Wireshark's own dissector of SDP read the private data of a REQ,
-- which it does by itself only on InfiniBand.
local judge = Proto("sdp_judge", "SDP as Wireshark reads it")
local sdp = Dissector.get("infiniband_sdp")
local PRIVATE_DATA_AT, PRIVATE_DATA_BYTES = 14 + 20 + 8 + 12 + 8 + 24 + 140, 92

function judge.dissector(tvb, pinfo, tree)
  sdp:call(tvb(PRIVATE_DATA_AT, PRIVATE_DATA_BYTES):tvb(), pinfo, tree)
end
register_postdissector(judge)
