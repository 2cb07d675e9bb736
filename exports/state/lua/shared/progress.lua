-- Progress: when it was last made, and the rows committed since a moment some seconds ago, which give the speed.
-- KEYS
--   task      hash    the task
-- USES
--   time
--   changed
local WINDOW_MS = 10000

-- The speed is counted anew from here.
local function begin_progress(now)
  local done = redis.call('HGET', K.task, 'rows_done') or '0'
  redis.call('HSET', K.task, 'progress_at', int(now), 'mark_at', int(now), 'mark_rows', done, 'next_at', int(now),
    'next_rows', done, 'stalled_at', '')
end

-- rows: committed just now. The moment counted from is one to two windows old.
local function progressed(now, rows)
  local done = redis.call('HINCRBY', K.task, 'rows_done', rows)
  local t = redis.call('HMGET', K.task, 'next_at', 'next_rows')
  if now - number_of(t[1] or '') >= WINDOW_MS then
    redis.call('HSET', K.task, 'mark_at', t[1] or int(now), 'mark_rows', t[2] or '0', 'next_at', int(now),
      'next_rows', int(done))
  end
  redis.call('HSET', K.task, 'progress_at', int(now), 'stalled_at', '')
  changed(now)
end
