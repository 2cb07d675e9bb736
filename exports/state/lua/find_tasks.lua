#!lua flags=no-writes
-- Tasks in one state that match, the last one to enter it first. Looks at a bounded number of tasks a call, so that
-- nobody waits long behind it. It names the keys of tasks itself: cluster mode is refused anyway.
-- Cost: O(scan).
-- KEYS
--   index_queued     zset  task id -> entered (ms)
--   index_running    zset  same
--   index_succeeded  zset  same
--   index_failed     zset  same
--   index_cancelled  zset  same
-- ARGV
--   state     text    which index
--   prefix    text    what stands before the id in the key of a task
--   newest    ms      entered the state at this time or before, or +inf
--   oldest    ms      entered it at this time or after, or -inf
--   before    text    within `newest`, only tasks whose id sorts before this one; '' for all
--   scan      count   tasks to look at; more than could enter a state in one millisecond
--   limit     count   tasks to answer
--   owner     text    of this owner, or ''
--   format    text    with this format, or ''
--   code      text    failed with this code, or ''
--   quiet_ms  ms      made no progress for this long, or 0
--   text      text    a part of taskId, requestId or traceId, or ''
-- USES
--   time
-- REPLY
--   ok        score and id to go on behind ('' when the end is reached), then score and id of each
local needle = string.lower(A.text)

local function holds(text)
  return string.find(string.lower(text), needle, 1, true) ~= nil
end

-- Field and what is asked of it: only what is asked for is read, of ten thousand tasks.
local asked = {}
local function ask(field, test) asked[#asked + 1] = {field = field, test = test} end
if A.owner ~= '' then ask('owner', function(owner) return owner == A.owner end) end
if A.format ~= '' then ask('format', function(format) return format == A.format end) end
if A.code ~= '' then ask('error_code', function(code) return code == A.code end) end
if A.quiet_ms ~= '0' then
  local latest = now_ms() - tonumber(A.quiet_ms)
  ask('progress_at', function(at) return number_of(at) <= latest end)
end
if A.text ~= '' then
  ask('request_id', function(request_id, id)
    return holds(request_id) or holds(id) or holds(redis.call('HGET', A.prefix .. id, 'traceparent'))
  end)
end

local function matches(id)
  for _, one in ipairs(asked) do
    local value = redis.call('HGET', A.prefix .. id, one.field)
    if not value or not one.test(value, id) then return false end
  end
  return true
end

local found = redis.call('ZREVRANGEBYSCORE', K['index_' .. A.state], A.newest, A.oldest, 'WITHSCORES', 'LIMIT', 0, A.scan)
local reply, full = {'ok', '', ''}, 2 * tonumber(A.limit) + 3
for i = 1, #found, 2 do
  local id, score = found[i], found[i + 1]
  if not (score == A.newest and A.before ~= '' and id >= A.before) and matches(id) then
    reply[#reply + 1], reply[#reply + 2] = score, id
  end
  if #reply == full or i + 1 == 2 * tonumber(A.scan) then
    reply[2], reply[3] = score, id
    break
  end
end
return reply
