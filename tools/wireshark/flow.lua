-- SPDX-License-Identifier: BSD-2-Clause
-- Connections as they show in the messages that pass, as tools/purecm/flow.h has them: which
-- message belongs to which connection, which state it leads both ends to, and how it ended. A
-- SIDR exchange is one, too. Ends are "active", who asked, and "passive".

local other_end = { active = "passive", passive = "active" }

-- All that was seen; begun anew for every file and every time it is read.
local flows, named, speakers, end_s

local function forget_flows()
  flows, named, speakers, end_s = {}, { active = {}, passive = {} }, {}, 0
end

local function name_of(who, comm_id, is_sidr)
  return ("%d/%d/%s"):format(who.key, comm_id, tostring(is_sidr))
end

-- The latest: comm ids may come back.
local function find_flow(which_end, who, comm_id, is_sidr)
  return comm_id ~= 0 and named[which_end][name_of(who, comm_id, is_sidr)] or nil
end

local function name_end(flow, which_end, comm_id)
  local its = flow.ends[which_end]
  if comm_id == 0 or its.comm_id ~= 0 then
    return
  end
  its.comm_id = comm_id
  named[which_end][name_of(flow.who[which_end], comm_id, flow.is_sidr)] = flow
end

local function add_flow(packet, from, is_sidr)
  local flow = {
    number = #flows + 1, is_sidr = is_sidr, is_whole = false, outcome = "FRAGMENT",
    who = { [from] = packet.src, [other_end[from]] = packet.dst },
    ends = { active = { state = "IDLE", comm_id = 0, qpn = 0 },
             passive = { state = "IDLE", comm_id = 0, qpn = 0 } },
    network = packet.network, seen = {}, first = {}, last = {}, first_s = packet.time_s, last_s = packet.time_s,
  }
  flows[flow.number] = flow
  return flow
end

-- --- which flow --------------------------------------------------------------

local function is_repetition(flow, req)
  local first = flow.first.REQ
  return first and first.starting_psn == req.starting_psn and
         first.local_qpn == req.local_qpn and flow.service_id == req.service_id
end

local function flow_of_req(packet, req)
  local flow = find_flow("active", packet.src, req.local_comm_id, false)
  if flow and is_repetition(flow, req) then
    return flow, "active"
  end
  flow = add_flow(packet, "active", false)
  name_end(flow, "active", req.local_comm_id)
  return flow, "active"
end

-- Both messages bear the id of the one who asks.
local function flow_of_sidr(packet, msg)
  local asks = msg.name == "SIDR_REQ"
  local from = asks and "active" or "passive"
  local flow = find_flow("active", asks and packet.src or packet.dst, msg.request_id, true)
  if flow and (not asks or flow.outcome == "ASKED") then
    return flow, from
  end
  flow = add_flow(packet, from, true)
  name_end(flow, "active", msg.request_id)
  return flow, from
end

-- Both ends of one host may have the same comm id, so the sender's own half has to fit as well.
local function fits_ids(flow, from, msg)
  if not flow then
    return false
  end
  local ours, theirs = flow.ends[from].comm_id, flow.ends[other_end[from]].comm_id
  local function agree(a, b)
    return a == 0 or b == 0 or a == b
  end
  return agree(msg.local_comm_id, ours) and agree(msg.remote_comm_id, theirs)
end

local function find_from(packet, msg, from)
  local flow = find_flow(other_end[from], packet.dst, msg.remote_comm_id, false)
  if fits_ids(flow, from, msg) and flow.who[from] == packet.src then
    return flow
  end
  flow = find_flow(from, packet.src, msg.local_comm_id, false)
  return fits_ids(flow, from, msg) and flow or nil
end

local ANSWERED_REQ, ANSWERED_REP = 0, 1

local function likely_sender(msg)
  if msg.name == "REP" then
    return "passive"
  elseif msg.name == "MRA" or msg.name == "REJ" then
    return msg.message == ANSWERED_REQ and "passive" or "active"
  end
  return "active"
end

local function flow_of_other(packet, msg)
  local from = likely_sender(msg)
  local flow = find_from(packet, msg, from)
  if not flow then
    from = other_end[from]
    flow = find_from(packet, msg, from)
  end
  if not flow then
    from = other_end[from]
    flow = add_flow(packet, from, false)
    name_end(flow, other_end[from], msg.remote_comm_id)
  end
  name_end(flow, from, msg.local_comm_id)
  return flow, from
end

local function flow_of(packet, msg)
  if msg.name == "REQ" then
    return flow_of_req(packet, msg)
  elseif msg.name == "SIDR_REQ" or msg.name == "SIDR_REP" then
    return flow_of_sidr(packet, msg)
  end
  return flow_of_other(packet, msg)
end

-- --- states ------------------------------------------------------------------

local REASON_TIMEOUT, REASON_SERVICE, REASON_STALE = 4, 8, 10

local function arrival_of(msg, is_first)
  if msg.name == "REQ" or msg.name == "SIDR_REQ" then
    return "RX_" .. msg.name .. (is_first and "" or "_DUP")
  elseif msg.name == "REP" then
    if is_first then
      return "RX_REP"
    end
    return msg.local_comm_id ~= 0 and "RX_REP_DUP" or nil
  elseif msg.name == "MRA" then
    return msg.message == ANSWERED_REQ and "RX_MRA_REQ" or
           msg.message == ANSWERED_REP and "RX_MRA_REP" or nil
  elseif msg.name == "REJ" then
    return msg.reason == REASON_STALE and "RX_REJ_STALE" or "RX_REJ"
  end
  return "RX_" .. msg.name
end

-- Only messages of one end were seen.
local function is_one_sided(flow)
  return not flow.last.active or not flow.last.passive
end

-- Moves an end by the table, from its own state or from the one that is given.
local function try_event(its, event, state)
  local to = event and edges[state or its.state][event]
  if to then
    its.state = to
  end
  return to ~= nil
end

local function move_sender(step, msg)
  local its = step.flow.ends[step.from]
  local _ = try_event(its, msg.kind.call) or try_event(its, "T_RESPONSE") or
            try_event(its, msg.kind.call, msg.kind.usual.from)
end

-- false if the message means nothing to its receiver.
local function move_receiver(step, msg)
  local its = step.flow.ends[other_end[step.from]]
  local first = arrival_of(msg, true)
  return try_event(its, arrival_of(msg, step.nth == 1)) or try_event(its, first) or
         ((not step.flow.is_whole or is_one_sided(step.flow)) and try_event(its, first, msg.kind.usual.to))
end

-- --- what it says ------------------------------------------------------------

local learn = {}

function learn.REQ(flow, req)
  flow.is_whole, flow.service_id, flow.service = true, req.service_id, req.service
  flow.ends.active.qpn = req.local_qpn
  flow.cma = req.cma
end

function learn.REP(flow, rep)
  flow.ends.passive.qpn = rep.local_qpn ~= 0 and rep.local_qpn or rep.local_eecn
end

function learn.SIDR_REQ(flow, req)
  flow.is_whole, flow.service_id, flow.service = true, req.service_id, req.service
  flow.cma = req.cma
end

function learn.SIDR_REP(flow, rep)
  flow.ends.passive.qpn = rep.qpn
  if not flow.is_whole then
    flow.service_id, flow.service = rep.service_id, rep.service
  end
end

local function count_message(step, packet, msg)
  local flow = step.flow
  local seen = flow.seen[msg.name]
  if not seen then
    seen = { count = 0, by = step.from, first_s = packet.time_s, frame = packet.frame }
    flow.seen[msg.name] = seen
    flow.first[msg.name] = msg
    if learn[msg.name] then
      learn[msg.name](flow, msg)
    end
  end
  -- A DREQ of either end is no repetition of the other's.
  seen.count = seen.count + 1
  step.nth = seen.by == step.from and seen.count or 1
  seen.last_s, flow.last_s, flow.last_frame = packet.time_s, packet.time_s, packet.frame
  end_s = math.max(end_s, packet.time_s)
end

-- --- outcome -----------------------------------------------------------------

local outcome_of = {}

local function outcome_of_request(step, now)
  return step.nth > 1 and now or "ASKED"
end
outcome_of.REQ, outcome_of.SIDR_REQ = outcome_of_request, outcome_of_request

function outcome_of.REP(_, now)
  return now == "ASKED" and "ANSWERED" or now
end

function outcome_of.RTU(_, now)
  return (now == "CLOSED" or now == "CLOSING") and now or "ESTABLISHED"
end

-- Nobody can listen at port 0, so a connection manager always refuses such a request.
local function is_ping(flow)
  return flow.cma ~= nil and not flow.is_sidr and flow.service.port == 0
end

function outcome_of.REJ(step, now, msg)
  if now == "REJECTED" or now == "GIVEN_UP" then
    return now
  end
  -- Who takes back what it has itself asked for does not reject anything.
  if step.from == "active" and now == "ASKED" then
    return "GIVEN_UP"
  end
  local is_probe = now == "ASKED" and is_ping(step.flow) and msg.reason == REASON_SERVICE
  return is_probe and "PROBED" or "REJECTED"
end

-- It would be repeated if it were not answered by the end that was not seen.
function outcome_of.DREQ(step, now)
  if is_one_sided(step.flow) then
    return step.nth > 1 and "CLOSING" or "CLOSED"
  end
  return now == "CLOSED" and now or "CLOSING"
end

function outcome_of.DREP()
  return "CLOSED"
end

-- A refusal may be of a probe, whose request was not seen.
function outcome_of.SIDR_REP(step, now, msg)
  if msg.status ~= 0 and not step.flow.is_whole then
    return now
  end
  return msg.status ~= 0 and "REJECTED" or "RESOLVED"
end

-- --- steps -------------------------------------------------------------------

local function is_copy(step, packet, msg)
  local last = step.flow.last[step.from]
  local since_s = last and packet.time_s - last.time_s
  step.flow.last[step.from] = { raw = msg.raw, time_s = packet.time_s }
  return last ~= nil and last.raw == msg.raw and since_s >= 0 and since_s < COPY_S
end

local function move_ends(step, msg)
  move_sender(step, msg)
  local means_something = move_receiver(step, msg)
  step.is_stray = not step.flow.is_sidr and not means_something
end

-- A message passes. Returns what it did, with both ends' states after it.
-- packet: { src, dst, time_s, frame }
local function take_message(packet, msg)
  speakers[packet.src] = true
  local step = { msg = msg, packet = packet, is_stray = false }
  step.flow, step.from = flow_of(packet, msg)
  step.is_copy = is_copy(step, packet, msg)
  if step.is_copy then
    step.nth = step.flow.seen[msg.name] and step.flow.seen[msg.name].count or 0
  else
    count_message(step, packet, msg)
    if msg.kind.call then
      move_ends(step, msg)
    end
    if not step.is_stray and outcome_of[msg.name] then
      step.flow.outcome = outcome_of[msg.name](step, step.flow.outcome, msg)
    end
  end
  step.outcome = step.flow.outcome
  step.state = { active = step.flow.ends.active.state, passive = step.flow.ends.passive.state }
  return step
end
