-- The bounded history of a task: at|name|detail.
-- KEYS
--   events    list    the last 200 events
-- USES
--   changed
local function note(now, name, detail)
  redis.call('RPUSH', K.events, int(now) .. '|' .. name .. '|' .. detail)
  redis.call('LTRIM', K.events, -200, -1)
  changed(now)
end
