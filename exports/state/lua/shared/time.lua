-- The server's clock, and whole numbers as text (Lua's own form of a large number has an exponent).
local function now_ms()
  local t = redis.call('TIME')
  return tonumber(t[1]) * 1000 + math.floor(tonumber(t[2]) / 1000)
end

local function int(number)
  return string.format('%.0f', number)
end

local function number_of(text)
  return tonumber(text) or 0
end
