-- SPDX-License-Identifier: BSD-2-Clause
-- The dissector: finds the MAD in what Wireshark's own dissectors of InfiniBand and RoCE get, lets
-- them do their work, and adds its own tree below theirs.

local ibcm = Proto("ibcm", "InfiniBand CM as purecm reads it")

-- --- fields ------------------------------------------------------------------

local function words(name)
  return (name:gsub("[_.]", " "):gsub("^%l", string.upper))
end

local function field_mask(row)
  local low = row.bytes * 8 - row.bit - row.width
  return row.width % 8 == 0 and row.bit == 0 and 0 or (power[row.width] - 1) * power[low]
end

local function make_field(abbreviation, row)
  local name = words(row.name)
  if row.look == "gid" then
    return ProtoField.ipv6(abbreviation, name)
  elseif row.look == "data" then
    return ProtoField.bytes(abbreviation, name)
  elseif row.width == 64 then
    return ProtoField.uint64(abbreviation, name, base.HEX)
  elseif row.is_split then
    return ProtoField.uint32(abbreviation, name, base.HEX)
  end
  local make = ({ ProtoField.uint8, ProtoField.uint16, ProtoField.uint24,
                  ProtoField.uint32 })[row.bytes]
  return make(abbreviation, name, row.look == "hex" and base.HEX or base.DEC, nil,
              field_mask(row))
end

local field = {
  connection = ProtoField.uint32("ibcm.connection", "Connection"),
  message = ProtoField.string("ibcm.message", "Message"),
  nth = ProtoField.uint32("ibcm.nth", "Of its kind from this end"),
  from = ProtoField.string("ibcm.from", "From the end"),
  active = ProtoField.string("ibcm.active", "Active end"),
  passive = ProtoField.string("ibcm.passive", "Passive end"),
  service = ProtoField.string("ibcm.service", "Service"),
  active_state = ProtoField.string("ibcm.active_state", "State of the active end"),
  passive_state = ProtoField.string("ibcm.passive_state", "State of the passive end"),
  outcome = ProtoField.string("ibcm.outcome", "Outcome so far"),
  request_in = ProtoField.framenum("ibcm.request_in", "Request in", base.NONE,
                                   frametype.REQUEST),
  answer_in = ProtoField.framenum("ibcm.answer_in", "Answer in", base.NONE, frametype.RESPONSE),
  seconds = ProtoField.double("ibcm.seconds", "Seconds since the connection began"),
  cma_src = ProtoField.ipv4("ibcm.cma.src_ip4", "Src addr"),
  cma_dst = ProtoField.ipv4("ibcm.cma.dst_ip4", "Dst addr"),
  ece = ProtoField.none("ibcm.ece", "Enhanced connection establishment (ECE)"),
  ece_vendor = ProtoField.uint32("ibcm.ece.vendor_id", "Vendor id", base.HEX),
  ece_options = ProtoField.uint32("ibcm.ece.options", "Options", base.HEX),
  what = ProtoField.string("ibcm.what", "What happened"),
  cause = ProtoField.string("ibcm.cause", "Likely cause"),
  remedy = ProtoField.string("ibcm.remedy", "Remedy"),
}

local title = { MAD = "MAD header", CMA = "IP CM header", rsocket = "rsocket, by the form of the private data" }

local all_fields = {}
for _, made in pairs(field) do
  all_fields[#all_fields + 1] = made
end
for _, layout in ipairs(layouts) do
  local filter = "ibcm." .. layout.name:lower()
  layout.field = ProtoField.none(filter, title[layout.name] or layout.name)
  all_fields[#all_fields + 1] = layout.field
  for _, row in ipairs(layout) do
    local first = layout.row[row.name]
    first.is_split = first.is_split or row ~= first or row.shift > 0
  end
  for _, row in ipairs(layout) do
    if layout.row[row.name] == row then
      row.field = make_field(filter .. "." .. row.name, row)
      all_fields[#all_fields + 1] = row.field
    end
  end
end
ibcm.fields = all_fields

local note = {
  failed = ProtoExpert.new("ibcm.failed", "A connection failed", expert.group.SEQUENCE,
                           expert.severity.ERROR),
  unfinished = ProtoExpert.new("ibcm.unfinished", "A connection is not answered",
                               expert.group.SEQUENCE, expert.severity.WARN),
  cause = ProtoExpert.new("ibcm.likely", "Its likely cause", expert.group.SEQUENCE,
                          expert.severity.NOTE),
  again = ProtoExpert.new("ibcm.again", "A message is sent again", expert.group.SEQUENCE,
                          expert.severity.NOTE),
  stray = ProtoExpert.new("ibcm.stray", "A message means nothing to its receiver",
                          expert.group.SEQUENCE, expert.severity.WARN),
  copy = ProtoExpert.new("ibcm.copy", "The same packet, captured twice", expert.group.SEQUENCE,
                         expert.severity.CHAT),
  cut = ProtoExpert.new("ibcm.cut", "The capture has only the beginning of the MAD",
                        expert.group.UNDECODED, expert.severity.WARN),
  unknown = ProtoExpert.new("ibcm.unknown", "Not a message that is known here",
                            expert.group.UNDECODED, expert.severity.WARN),
}
local all_notes = {}
for _, made in pairs(note) do
  all_notes[#all_notes + 1] = made
end
ibcm.experts = all_notes

-- --- trees -------------------------------------------------------------------

local function value_note(row, value)
  return row.note and (row.note[value] or row.note.other)
end

-- at: where the layout begins in tvb. Returns the tree that holds it.
local function add_layout(parent, tvb, at, layout, read)
  local tree = parent:add(layout.field, tvb(at, layout.bytes))
  for _, row in ipairs(layout) do
    if row.field then
      local range = tvb(at + row.byte, row.bytes)
      local item
      if row.is_split then
        item = tree:add(row.field, range, read[row.name])
        item:append_text(" (in several places)")
      else
        item = tree:add(row.field, range)
      end
      local text = value_note(row, read[row.name])
      if text then
        item:append_text((" (%s)"):format(text))
      elseif row.name == "service_id" then
        item:append_text((" (%s)"):format(service_text(service_of(read.service_id))))
      end
    end
  end
  return tree
end

local function add_part(tree, tvb, at, layout)
  return add_layout(tree, tvb, at, layout, read_layout(tvb(at, layout.bytes):raw(), 0, layout))
end

local function add_private_data(tree, tvb, msg, at)
  local data_at = at + MAD_HDR_BYTES + layout_named[msg.name].row.private_data.byte
  local rsocket_at = 0
  if msg.cma then
    local header = add_part(tree, tvb, data_at, layout_named.CMA)
    if msg.cma.ip_version == 4 then
      header:add(field.cma_src, tvb(data_at + layout_named.CMA.row.src_addr.byte + 12, 4))
      header:add(field.cma_dst, tvb(data_at + layout_named.CMA.row.dst_addr.byte + 12, 4))
    end
    rsocket_at = CMA_HDR_BYTES
  end
  if (msg.name == "REQ" or msg.name == "REP") and
     has_rsocket_form(msg.private_data, rsocket_at) then
    add_part(tree, tvb, data_at + rsocket_at, layout_named.rsocket)
  end
end

local BEARS_ECE = { REQ = true, REP = true, SIDR_REP = true }

local function add_ece(tree, tvb, msg, at)
  if not BEARS_ECE[msg.name] or (msg.vendor_id == 0 and msg.mad.attr_mod == 0) then
    return
  end
  local mad = layout_named.MAD.row.attr_mod
  local vendor = layout_named[msg.name].row.vendor_id
  local ece = tree:add(field.ece, tvb(at, MAD_HDR_BYTES))
  ece:add(field.ece_vendor, tvb(at + MAD_HDR_BYTES + vendor.byte, vendor.bytes), msg.vendor_id)
  ece:add(field.ece_options, tvb(at + mad.byte, mad.bytes))
end

local function add_message(tree, tvb, msg, at)
  add_layout(tree, tvb, at, layout_named.MAD, msg.mad)
  add_layout(tree, tvb, at + MAD_HDR_BYTES, layout_named[msg.name], msg)
  add_ece(tree, tvb, msg, at)
  if msg.private_data then
    add_private_data(tree, tvb, msg, at)
  end
end

-- --- connections -------------------------------------------------------------

local REQUEST_OF = { REP = "REQ", MRA = "REQ", REJ = "REQ", RTU = "REP", DREP = "DREQ",
                     SIDR_REP = "SIDR_REQ" }
local ANSWERS_OF = { REQ = { "REP", "REJ" }, REP = { "RTU", "REJ" }, DREQ = { "DREP" },
                     SIDR_REQ = { "SIDR_REP" } }

local function add_links(tree, step)
  local seen = step.flow.seen
  local request = seen[REQUEST_OF[step.msg.name]]
  if request and request.frame ~= step.packet.frame then
    tree:add(field.request_in, request.frame):set_generated()
  end
  for _, name in ipairs(ANSWERS_OF[step.msg.name] or {}) do
    if seen[name] and seen[name].by ~= step.from then
      tree:add(field.answer_in, seen[name].frame):set_generated()
      break
    end
  end
end

local function add_connection(tree, step)
  local flow = step.flow
  local function add(which, value)
    tree:add(field[which], value):set_generated()
  end
  add("connection", flow.number)
  add("message", step.msg.name)
  add("nth", step.nth)
  add("from", step.from)
  add("active", end_text(flow, "active"))
  add("passive", end_text(flow, "passive"))
  add("service", flow_service_text(flow))
  add("active_state", step.state.active)
  add("passive_state", step.state.passive)
  add("outcome", outcomes[step.outcome].word)
  add("seconds", step.packet.time_s - flow.first_s)
  add_links(tree, step)
end

-- The message that tells that a flow failed: an answer, or the last one, which nothing followed.
local function failure_frame(flow)
  local answer = flow.is_sidr and flow.seen.SIDR_REP or flow.seen.REJ
  if (flow.outcome == "REJECTED" or flow.outcome == "GIVEN_UP") and answer then
    return answer.frame
  end
  return flow.last_frame
end

-- is_read_before: what follows is known, as far as it was captured
local function add_notes(tree, step, is_read_before)
  local flow, frame = step.flow, step.packet.frame
  if step.is_copy then
    tree:add_proto_expert_info(note.copy)
    return
  end
  if step.nth > 1 then
    tree:add_proto_expert_info(note.again, ("%s number %d"):format(step.msg.name, step.nth))
  end
  if step.is_stray then
    tree:add_proto_expert_info(note.stray)
  end
  local is_answered = flow.outcome == "REJECTED" or flow.outcome == "GIVEN_UP"
  if not outcomes[flow.outcome].failed or failure_frame(flow) ~= frame or
     not (is_read_before or is_answered) then
    return
  end
  local is_probe = flow.service and flow.service.bytes == probed_service
  local said = not is_probe and find_advice(flow)
  if said then
    tree:add(field.what, said.what):set_generated()
    tree:add(field.cause, said.cause):set_generated()
    tree:add(field.remedy, said.remedy):set_generated()
    tree:add_proto_expert_info(is_answered and note.failed or note.unfinished, said.what)
    tree:add_proto_expert_info(note.cause, said.cause)
  end
end

local function set_columns(pinfo, step)
  local flow = step.flow
  pinfo.cols.protocol = "IB CM"
  pinfo.cols.info = ("#%d %s%s  %s to %s, %s  [%s | %s]"):format(
    flow.number, step.msg.name, step.nth > 1 and (" (%d)"):format(step.nth) or "",
    end_text(flow, "active"), end_text(flow, "passive"), flow_service_text(flow),
    step.state.active, step.state.passive)
  local reason = step.msg.name == "REJ" and value_note(layout_named.REJ.row.reason,
                                                       step.msg.reason)
  if reason then
    pinfo.cols.info:append((" REJ %d: %s"):format(step.msg.reason, reason))
  end
end

-- --- packets -----------------------------------------------------------------

-- By address: { key, address or lid, text }. Text may be a name, and may become one.
local who_by_text, all_who
local steps -- by frame

local function reset()
  who_by_text, all_who, steps = {}, {}, {}
  forget_flows()
end
reset()

local function new_who(who)
  all_who[#all_who + 1] = who
  who.key = #all_who
  return who
end

local function who_of_lid(lid)
  local text = ("lid %d"):format(lid)
  who_by_text[text] = who_by_text[text] or new_who({ lid = lid, text = text })
  return who_by_text[text]
end

local function who_of_address(address, text)
  local known = who_by_text[text]
  if known and known.address == address then
    return known
  end
  for _, who in ipairs(all_who) do
    if who.address and who.address == address then
      who_by_text[text] = who
      return who
    end
  end
  who_by_text[text] = new_who({ address = address, text = text })
  return who_by_text[text]
end

local function who_of_gid(gid)
  return who_of_address(gid_address(gid), gid_text(gid))
end

local BTH_BYTES, DETH_BYTES, GRH_BYTES, LRH_BYTES, IMM_BYTES = 12, 8, 40, 8, 4
local UD_SEND, UD_SEND_IMM = 0x64, 0x65
local QPN_GSI, QKEY_GSI = 1, 0x80010000
local LNH_LOCAL, LNH_GLOBAL = 2, 3

-- Where the MAD begins in tvb, if at is that of a BTH; nil: there is none.
local function mad_behind_bth(tvb, at)
  local mad_at = at + BTH_BYTES + DETH_BYTES
  if tvb:len() < mad_at then
    return nil
  end
  local opcode = tvb(at, 1):uint()
  if opcode ~= UD_SEND and opcode ~= UD_SEND_IMM then
    return nil
  end
  if tvb(at + 5, 3):uint() ~= QPN_GSI and tvb(at + BTH_BYTES, 4):uint() ~= QKEY_GSI then
    return nil
  end
  mad_at = opcode == UD_SEND_IMM and mad_at + IMM_BYTES or mad_at
  if tvb:len() < mad_at + 2 or tvb(mad_at + 1, 1):uint() ~= MAD_CLASS_CM then
    return nil
  end
  return mad_at
end

-- Of each kind of layer: where its MAD begins, or nil, and from whom to whom it is.
local function find_in_udp(tvb, pinfo)
  local at = mad_behind_bth(tvb, 0)
  if not at then
    return nil
  end
  return at, who_of_address(pinfo.net_src, tostring(pinfo.net_src)),
         who_of_address(pinfo.net_dst, tostring(pinfo.net_dst))
end

local function find_in_grh(tvb, _, grh_at)
  grh_at = grh_at or 0
  local at = mad_behind_bth(tvb, grh_at + GRH_BYTES)
  if not at then
    return nil
  end
  return at, who_of_gid(tvb(grh_at + 8, 16):raw()), who_of_gid(tvb(grh_at + 24, 16):raw())
end

local function find_in_lrh(tvb, pinfo)
  if tvb:len() < LRH_BYTES then
    return nil
  end
  local next_header = tvb(1, 1):uint() % 4
  if next_header == LNH_GLOBAL then
    return find_in_grh(tvb, pinfo, LRH_BYTES)
  end
  local at = next_header == LNH_LOCAL and mad_behind_bth(tvb, LRH_BYTES)
  if not at then
    return nil
  end
  return at, who_of_lid(tvb(6, 2):uint()), who_of_lid(tvb(2, 2):uint())
end

local function add_undecoded(tree, tvb, at, which)
  tree:add(ibcm, tvb(at)):add_proto_expert_info(note[which])
end

local function dissect_mad(tvb, at, packet, pinfo, tree)
  if tvb:len() < at + MAD_BYTES then
    add_undecoded(tree, tvb, at, "cut")
    return
  end
  local raw = tvb(at, MAD_BYTES):raw()
  local msg = is_message(raw) and read_message(raw)
  if not msg then
    add_undecoded(tree, tvb, at, "unknown")
    return
  end
  local frame = pinfo.number
  local is_read_before = steps[frame] ~= nil
  if not is_read_before then
    packet.time_s, packet.frame = pinfo.rel_ts, frame
    steps[frame] = take_message(packet, msg)
  end
  local step = steps[frame]
  local item = tree:add(ibcm, tvb(at, MAD_BYTES))
  item:append_text((", %s, connection #%d"):format(msg.name, step.flow.number))
  add_connection(item, step)
  add_notes(item, step, is_read_before)
  add_message(item, tvb, msg, at)
  set_columns(pinfo, step)
end

-- --- where it stands in Wireshark --------------------------------------------

function ibcm.init()
  reset()
end

-- A dissector that takes the place of Wireshark's own in a table, and calls it. A packet that an
-- ICMP error quotes is not another one.
local function stand_before(table_name, pattern, network, find)
  local dissectors = DissectorTable.get(table_name)
  local own = dissectors and dissectors:get_dissector(pattern)
  if not own then
    return
  end
  local name = ("ibcm_%s_%d"):format(table_name:gsub("%W", "_"), pattern)
  local before = Proto(name, ("InfiniBand CM in %s %d"):format(table_name, pattern))
  function before.dissector(tvb, pinfo, tree)
    local at, src, dst
    if not pinfo.in_error_pkt then
      at, src, dst = find(tvb, pinfo)
    end
    local packet_src, packet_dst = pinfo.src, pinfo.dst
    -- It throws where a packet ends too early, after it has shown that.
    pcall(own.call, own, tvb, pinfo, tree)
    if at then
      if network == "RoCE v2" then -- it has put the LIDs of a REQ there
        pinfo.src, pinfo.dst = packet_src, packet_dst
      end
      dissect_mad(tvb, at, { src = src, dst = dst, network = network }, pinfo, tree)
    end
    return tvb:len()
  end
  dissectors:add(pattern, before)
end

local encapsulations = wtap or wtap_encaps
stand_before("udp.port", 4791, "RoCE v2", find_in_udp)
stand_before("ethertype", 0x8915, "RoCE v1", find_in_grh)
stand_before("wtap_encap", encapsulations.INFINIBAND, "InfiniBand", find_in_lrh)
stand_before("erf.types.type", 21, "InfiniBand", find_in_lrh)
stand_before("erf.types.type", 25, "InfiniBand", find_in_lrh)

-- In the menu of a packet: only the messages of its connection.
if gui_enabled() and register_packet_menu then
  register_packet_menu("InfiniBand CM/Follow connection", function(...)
    for _, info in ipairs({ ... }) do
      if info.name == "ibcm.connection" then
        set_filter("ibcm.connection == " .. info.display)
        apply_filter()
      end
    end
  end, "ibcm.connection")
end
