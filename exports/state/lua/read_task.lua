#!lua flags=no-writes
-- Everything a reader wants of a task, at one moment.
-- Cost: O(shards).
-- KEYS
--   task      hash    the task
--   shards    hash    shard id -> record
--   running   hash    step -> lease
--   index_queued   zset  task id -> entered (ms)
-- ARGV
--   id        text    task id
-- USES
--   time
--   records
-- REPLY
--   gone      there is no such task
--   ok        now, processed, total, shards, done, running, drift, drift known, tasks queued
--             before this one or '', then the task's fields and values
local fields = redis.call('HGETALL', K.task)
if #fields == 0 then return {'gone'} end
local processed, total, shards, finished, drift, certainty = 0, 0, 0, 0, 0, 'exact'
for _, text in ipairs(redis.call('HVALS', K.shards)) do
  local r = parse_record(text)
  shards = shards + 1
  processed = processed + r.seen
  if r.drift == '' then
    total = total + math.max(r.planned, r.seen)
  else
    finished = finished + 1
    total = total + math.max(r.rows, r.seen)
    if r.drift == 'unknown' then
      certainty = 'unknown'
    elseif r.drift ~= 'exact' then
      drift = drift + number_of(r.drift)
      if certainty == 'exact' then certainty = 'changed' end
    end
  end
end
local running = redis.call('HLEN', K.running)
local before = redis.call('ZRANK', K.index_queued, A.id)
return {'ok', int(now_ms()), int(processed), int(total), int(shards), int(finished), int(running), certainty, int(drift),
  before and int(before) or '', unpack(fields)}
