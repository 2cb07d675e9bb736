-- When something of a task changed that its owner sees: who follows many tasks asks for those that changed since.
-- KEYS
--   owner_changed    zset    task id -> last change (ms), of one owner
-- ARGV
--   id        text    task id
local function changed(now)
  redis.call('ZADD', K.owner_changed, int(now), A.id)
end
