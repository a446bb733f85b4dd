-- SPDX-License-Identifier: BSD-2-Clause
-- What is said of a connection that failed: the rows of advice, the questions that choose one, and
-- the facts that its texts name in braces, as tools/purecm/context.h has them.

local PKEY_DEFAULT, TIMEOUT_DEFAULT, LOOKS_MAX, DATA_SHOWN_MAX = 0xffff, 20, 10000, 64
local RESEND_LATEST_S = 7 -- of a REQ

local function encoded_s(timeout)
  return 4.096e-6 * power[timeout % 32]
end

local function count_of(flow, name)
  return flow.seen[name] and flow.seen[name].count or 0
end

local function by_of(flow, name)
  return flow.seen[name] and flow.seen[name].by or "active"
end

local function request_of(flow)
  return flow.first.REQ or flow.first.SIDR_REQ
end

local function without_zeros(data)
  return (data:gsub("%z+$", ""))
end

local function is_gid_of(gid, who)
  return who.address ~= nil and gid_address(gid) == who.address
end

-- --- questions ---------------------------------------------------------------

local question = {}

function question.got_mra(flow)
  return count_of(flow, "MRA") > 0
end

local function was_repeated(flow)
  if flow.outcome == "CLOSING" then
    return count_of(flow, "DREQ") > 1
  end
  return count_of(flow, "REQ") > 1 or count_of(flow, "REP") > 1 or count_of(flow, "SIDR_REQ") > 1
end

function question.has_just_begun(flow)
  local req = flow.first.REQ
  local timeout = req and req.remote_cm_response_timeout or 0
  if count_of(flow, "REP") > 0 then
    timeout = req and req.local_cm_response_timeout or 0
  end
  if timeout == 0 then
    timeout = TIMEOUT_DEFAULT
  end
  return not was_repeated(flow) and end_s - flow.last_s < encoded_s(timeout)
end

-- A capture does not tell where it was made.
function question.is_received_here()
  return false
end

function question.peer_speaks(flow)
  return speakers[flow.who.passive] == true
end

function question.is_infiniband(flow)
  return flow.network == "InfiniBand"
end

function question.is_roce_v1(flow)
  return flow.network == "RoCE v1"
end

function question.answer_was_late(flow)
  local rej = flow.seen.REJ
  return count_of(flow, "REP") > 0 or
         (rej ~= nil and rej.count > 1 and rej.by == "active" and rej.last_s > rej.first_s)
end

function question.waited_briefly(flow)
  return not was_repeated(flow) and not question.answer_was_late(flow) and
         flow.seen.REJ ~= nil and flow.seen.REJ.first_s - flow.first_s < RESEND_LATEST_S
end

function question.has_no_ip_header(flow)
  return flow.is_whole and ip_spaces[flow.service.space] == true and
         service_spaces[flow.service.space] ~= "IB" and not flow.cma
end

function question.has_foreign_gid(flow)
  local req = flow.first.REQ
  return req ~= nil and not flow.who.active.lid and
         not (is_gid_of(req["primary.local_gid"], flow.who.active) and
              is_gid_of(req["primary.remote_gid"], flow.who.passive))
end

-- Where GIDs are made of IP addresses; on InfiniBand they are not. An address that is shown by its
-- name is taken for the right one.
function question.has_other_address(flow)
  local cma, passive = flow.cma, flow.who.passive
  if not cma or not passive.address then
    return false
  end
  if cma.ip_version == 6 then
    return not is_gid_of(cma.dst_addr, passive)
  end
  return passive.text:find("^%d+%.%d+%.%d+%.%d+$") ~= nil and
         not is_gid_of(IPV4_PREFIX .. cma.dst_addr:sub(13), passive)
end

function question.has_other_pkey(flow)
  return flow.is_whole and request_of(flow).pkey ~= PKEY_DEFAULT
end

local function older_flow(flow)
  local refused = other_end[by_of(flow, "REJ")]
  local who, qpn = flow.who[refused], flow.ends[refused].qpn
  if qpn == 0 then
    return nil
  end
  for number = flow.number - 1, math.max(1, flow.number - LOOKS_MAX), -1 do
    local other = flows[number]
    for which_end, its in pairs(other.ends) do
      if other.who[which_end] == who and its.qpn == qpn and count_of(other, "REP") > 0 then
        return other
      end
    end
  end
  return nil
end

function question.has_older(flow)
  return older_flow(flow) ~= nil
end

function question.has_private_data(flow)
  return flow.first.REJ ~= nil and without_zeros(flow.first.REJ.private_data) ~= ""
end

function question.was_rejected_by_active(flow)
  return by_of(flow, "REJ") == "active"
end

function question.was_established(flow)
  return count_of(flow, "RTU") > 0
end

function question.dreq_names_other_qpn(flow)
  local qpn = flow.ends[other_end[by_of(flow, "DREQ")]].qpn
  return qpn ~= 0 and flow.first.DREQ ~= nil and flow.first.DREQ.remote_qpn ~= qpn
end

-- --- facts -------------------------------------------------------------------

local function end_text(flow, which_end)
  local text, port = flow.who[which_end].text, 0
  if flow.cma then
    port = which_end == "active" and flow.cma.src_port or flow.service.port
  end
  if port == 0 then
    return text
  elseif text:find(":", 1, true) then
    return ("[%s]:%d"):format(text, port)
  end
  return ("%s:%d"):format(text, port)
end

local function flow_service_text(flow)
  return flow.service and service_text(flow.service) or "service 0x0"
end

local function times_text(flow, name)
  local seen = flow.seen[name]
  if seen and seen.count == 1 then
    return "one " .. name
  end
  return ("%d %ss in %.1f s"):format(seen and seen.count or 0, name,
                                     seen and seen.last_s - seen.first_s or 0)
end

local function data_text(data)
  local shown = without_zeros(data):sub(1, DATA_SHOWN_MAX)
  if shown == "" then
    return "nothing"
  end
  return ("%s \"%s\""):format(hex(shown), (shown:gsub("[^\33-\126]", ".")))
end

local fact = {}

function fact.active(flow)
  return end_text(flow, "active")
end

function fact.passive(flow)
  return end_text(flow, "passive")
end

function fact.host(flow)
  return flow.who.passive.text
end

function fact.rejecter(flow)
  return end_text(flow, by_of(flow, "REJ"))
end

function fact.closer(flow)
  return end_text(flow, by_of(flow, "DREQ"))
end

function fact.closed(flow)
  return end_text(flow, other_end[by_of(flow, "DREQ")])
end

fact.service = flow_service_text

function fact.requests(flow)
  return times_text(flow, flow.is_sidr and "SIDR_REQ" or "REQ")
end

function fact.replies(flow)
  return times_text(flow, "REP")
end

function fact.dreqs(flow)
  return times_text(flow, "DREQ")
end

function fact.watched(flow)
  return ("%.1f s"):format(end_s - flow.first_s)
end

function fact.waited(flow)
  return ("%.1f s"):format(flow.seen.REJ.first_s - flow.first_s)
end

function fact.mra_wait(flow)
  return ("%.0f s"):format(encoded_s(flow.first.MRA and flow.first.MRA.service_timeout or 0))
end

function fact.late(flow)
  return ("%.1f s"):format(flow.last_s - flow.seen.REJ.first_s)
end

function fact.reason(flow)
  local notes = layout_named.REJ.row.reason.note
  local reason = flow.first.REJ.reason
  return ("%d, %s"):format(reason, notes[reason] or notes.other)
end

function fact.qpn(flow)
  return ("0x%x"):format(flow.ends[other_end[by_of(flow, "REJ")]].qpn)
end

function fact.guid(flow)
  local of = by_of(flow, "REJ") == "passive" and flow.first.REQ or flow.first.REP
  return "0x" .. (of and by_of(flow, "REJ") and hex(of.local_ca_guid) or ("0"):rep(16))
end

function fact.older(flow)
  local older = older_flow(flow)
  return older and ("#%d"):format(older.number) or ""
end

function fact.older_end(flow)
  local older = older_flow(flow)
  return older and outcomes[older.outcome].text or ""
end

function fact.ari(flow)
  local rej = flow.first.REJ
  local bytes = math.min(rej.ari_bytes, #rej.ari)
  if bytes == 0 then
    return "nothing"
  elseif bytes == 16 then
    return gid_text(rej.ari:sub(1, 16))
  end
  return "0x" .. hex(rej.ari:sub(1, bytes))
end

-- In the first byte: four bits, at either end of it by what one has read.
function fact.ari_mtu(flow)
  local byte = flow.first.REJ.ari:byte(1)
  local mtu = byte >= 16 and math.floor(byte / 16) or byte
  if flow.first.REJ.ari_bytes > 0 and mtu >= 1 and mtu <= 5 then
    return ("%d bytes"):format(128 * power[mtu])
  end
  return "unknown"
end

function fact.mtu(flow)
  return ("%d bytes"):format(128 * power[flow.first.REQ and flow.first.REQ.path_mtu % 8 or 0])
end

function fact.pkey(flow)
  local request = request_of(flow)
  return ("0x%04x"):format(request and request.pkey or 0)
end

function fact.named_gids(flow)
  local req, zero = flow.first.REQ, ("\0"):rep(16)
  return gid_text(req and req["primary.local_gid"] or zero) .. " to " ..
         gid_text(req and req["primary.remote_gid"] or zero)
end

function fact.packet_gids(flow)
  return flow.who.active.text .. " to " .. flow.who.passive.text
end

function fact.header_address(flow)
  local cma = flow.cma
  return cma.ip_version == 4 and ipv4_text(cma.dst_addr:sub(13)) or ipv6_text(cma.dst_addr)
end

function fact.rej_data(flow)
  return data_text(flow.first.REJ.private_data)
end

function fact.req_data(flow)
  return data_text(request_of(flow).private_data:sub(1, CMA_HDR_BYTES))
end

function fact.dreq_qpn(flow)
  return ("0x%x"):format(flow.first.DREQ.remote_qpn)
end

function fact.true_qpn(flow)
  return ("0x%x"):format(flow.ends[other_end[by_of(flow, "DREQ")]].qpn)
end

function fact.status(flow)
  return ("%d"):format(flow.first.SIDR_REP.status)
end

function fact.comm_id(flow)
  return ("0x%x"):format(flow.ends.active.comm_id)
end

-- Rows ask and name only what there is here: Wireshark shows the error when it starts.
for _, row in ipairs(advice) do
  for _, name in ipairs(row.fits) do
    assert(question[name], name)
  end
  for word in (row.what .. row.cause .. row.remedy):gmatch("{(.-)}") do
    assert(fact[word], word)
  end
end

-- --- advice ------------------------------------------------------------------

local function fits_advice(row, flow)
  local answer = flow.is_sidr and flow.first.SIDR_REP or flow.first.REJ
  local reason = answer and (flow.is_sidr and answer.status or answer.reason) or 0
  if row.outcome ~= flow.outcome or row.is_sidr ~= flow.is_sidr or
     (row.reason and row.reason ~= reason) then
    return false
  end
  for _, name in ipairs(row.fits) do
    if not question[name](flow) then
      return false
    end
  end
  return true
end

-- What to say of a flow: { what, cause, remedy }, or nil for one that has not failed.
local function find_advice(flow)
  for _, row in ipairs(advice) do
    if fits_advice(row, flow) then
      local said = {}
      for _, part in ipairs({ "what", "cause", "remedy" }) do
        said[part] = row[part]:gsub("{(.-)}", function(word) return fact[word](flow) end)
      end
      return said
    end
  end
  return nil
end
