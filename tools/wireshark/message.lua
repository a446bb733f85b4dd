-- SPDX-License-Identifier: BSD-2-Clause
-- A MAD as a string of its bytes, read by the rows of the layouts; values and addresses in words.

local layout_named = {}
for _, layout in ipairs(layouts) do
  layout_named[layout.name] = layout
  layout.row = {}
  for _, row in ipairs(layout) do
    row.bytes = math.floor((row.bit + row.width + 7) / 8)
    layout.row[row.name] = layout.row[row.name] or row
  end
end

-- Integers in every version of Lua, where 2^n is a float in some.
local power = { [0] = 1 }
for n = 1, 52 do
  power[n] = power[n - 1] * 2
end

-- The value of a row of up to 32 bits; at: where the layout begins, from 0.
local function read_bits(raw, at, row)
  local value = 0
  for i = at + row.byte + 1, at + row.byte + row.bytes do
    value = value * 256 + raw:byte(i)
  end
  value = math.floor(value / power[row.bytes * 8 - row.bit - row.width])
  return value % power[row.width]
end

local function hex(bytes)
  return (bytes:gsub(".", function(c) return ("%02x"):format(c:byte()) end))
end

-- Integers of up to 32 bits as numbers, all others as strings of bytes.
local function read_layout(raw, at, layout)
  local read = {}
  for _, row in ipairs(layout) do
    if row.look == "gid" or row.look == "data" or row.width > 32 then
      read[row.name] = raw:sub(at + row.byte + 1, at + row.byte + row.width / 8)
    else
      read[row.name] = (read[row.name] or 0) + read_bits(raw, at, row) * power[row.shift]
    end
  end
  return read
end

-- --- service ids -------------------------------------------------------------

-- No host has it: mad/talk.h.
local probed_service = "\2purecm\0"

-- A service id of 8 bytes: port space and port.
local function service_of(bytes)
  local space = 0
  for i = 1, 6 do
    space = space * 256 + bytes:byte(i)
  end
  return { bytes = bytes, space = space, port = bytes:byte(7) * 256 + bytes:byte(8) }
end

local function service_text(service)
  if service_spaces[service.space] then
    return ("%s port %d"):format(service_spaces[service.space], service.port)
  end
  if service.bytes == probed_service then
    return "purecm's probe of a path"
  end
  local digits = hex(service.bytes):gsub("^0+", "")
  return "service 0x" .. (digits == "" and "0" or digits)
end

-- The IP CM header of a request, or nil.
local function read_cma(private_data, service)
  local cma = read_layout(private_data, 0, layout_named.CMA)
  if ip_spaces[service.space] and cma.cma_version == 0 and
     (cma.ip_version == 4 or cma.ip_version == 6) then
    return cma
  end
  return nil
end

-- rsockets mark their private data by nothing; it has this form.
local function has_rsocket_form(data, at)
  if #data < at + RS_HELLO_BYTES then
    return false
  end
  local hello = read_layout(data, at, layout_named.rsocket)
  return hello.version == RS_VERSION and data:byte(at + 2) < 4 and
         data:sub(at + 5, at + 7) == "\0\0\0" and hello.credits > 0 and
         hello.table_entries > 0 and hello.half_bytes > 0 and
         hello.table_addr ~= ("\0"):rep(8)
end

-- --- addresses ---------------------------------------------------------------

local IPV4_PREFIX = ("\0"):rep(10) .. "\255\255"

local function ipv4_text(bytes)
  return ("%d.%d.%d.%d"):format(bytes:byte(1, 4))
end

-- Where the longest row of zeros of 8 words begins, and how long it is; at least two.
local function longest_zeros(words)
  local best_at, best = 0, 1
  local at = 1
  while at <= 8 do
    local n = 0
    while at + n <= 8 and words[at + n] == 0 do
      n = n + 1
    end
    if n > best then
      best_at, best = at, n
    end
    at = at + n + 1
  end
  return best_at, best
end

local function ipv6_text(bytes)
  local words = {}
  for i = 1, 8 do
    words[i] = bytes:byte(2 * i - 1) * 256 + bytes:byte(2 * i)
  end
  local at, n = longest_zeros(words)
  if at == 1 and (n == 6 or (n == 5 and words[6] == 65535)) then
    return (n == 6 and "::" or "::ffff:") .. ipv4_text(bytes:sub(13))
  end
  local text = {}
  for i, word in ipairs(words) do
    text[i] = ("%x"):format(word)
  end
  if at == 0 then
    return table.concat(text, ":")
  end
  return table.concat(text, ":", 1, at - 1) .. "::" .. table.concat(text, ":", at + n, 8)
end

local function is_ipv4_gid(gid)
  return gid:sub(1, 12) == IPV4_PREFIX
end

local function gid_text(gid)
  return is_ipv4_gid(gid) and ipv4_text(gid:sub(13)) or ipv6_text(gid)
end

local function gid_address(gid)
  return is_ipv4_gid(gid) and Address.ip(gid_text(gid)) or Address.ipv6(gid_text(gid))
end

-- --- messages ----------------------------------------------------------------

local function is_message(raw)
  return raw:byte(1) == 1 and raw:byte(2) == MAD_CLASS_CM and
         raw:byte(3) == MAD_CM_VERSION and raw:byte(4) == MAD_METHOD_SEND
end

-- The message in a MAD, or nil if the CM class does not have its attribute.
local function read_message(raw)
  local mad = read_layout(raw, 0, layout_named.MAD)
  local kind = messages[mad.attr_id]
  if not kind then
    return nil
  end
  local msg = read_layout(raw, MAD_HDR_BYTES, layout_named[kind.name])
  msg.name, msg.kind, msg.mad, msg.raw = kind.name, kind, mad, raw
  if msg.service_id then
    msg.service = service_of(msg.service_id)
    if msg.name ~= "SIDR_REP" then
      msg.cma = read_cma(msg.private_data, msg.service)
    end
  end
  return msg
end
