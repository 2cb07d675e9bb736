#!lua
-- Commit one page whose bytes are in the segment: cursor, rows and segment move together. Renews the lease.
-- State: running -> running. Cost: O(log leases).
-- KEYS
--   segments  hash    segment -> fence|length|crc|pages|rows|shard
--   metrics   hash    counters
-- ARGV
--   step        text    shard id
--   claim       text    the claim that holds it
--   old_cursor  text    cursor before the page
--   cursor      text    key of the page's last row
--   rows        rows    of the page
--   segment     text    name of the segment file
--   length      bytes   committed with this page, of the segment
--   crc         number  CRC-32 of those bytes
--   pages       count   of the segment
--   seg_rows    rows    of the segment
--   took_ms     ms      to read, encode and append the page
--   read_ms     ms      that a full page took to read; 0 for one that says nothing
-- USES
--   time
--   records
--   leases
--   guard
--   progress
--   minutes
--   buckets
-- REPLY
--   ok        committed, also when it was before
--   stop      committed; the task is being cancelled: release
--   lost      nothing written: the claim does not hold the shard, or the cursor is another
local PAGE_BUCKETS_MS = {5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10000, 20000}
local l = held(A.step, A.claim)
if not l then return {'lost'} end
local r, now = read_record(A.step), now_ms()
if r.cursor ~= A.cursor then
  if r.cursor ~= A.old_cursor then return {'lost'} end
  r.rows = r.rows + tonumber(A.rows)
  r.seen = math.max(r.seen, r.rows)
  r.pages = r.pages + 1
  r.attempts, r.recoveries, r.cursor = 0, 0, A.cursor
  write_record(A.step, r)
  redis.call('HSET', K.segments, A.segment, table.concat({l.fence, A.length, A.crc, A.pages, A.seg_rows, A.step}, '|'))
  redis.call('HINCRBY', K.metrics, 'rows', A.rows)
  observe('page', tonumber(A.took_ms), PAGE_BUCKETS_MS)
  count_minute(now, 'rows', A.rows)
  progressed(now, A.rows)
  if tonumber(A.read_ms) > 0 then note_latency(tonumber(A.read_ms)) end
end
l.begun = '1'
write_lease(A.step, l, now)
return {cancel_requested() ~= '' and 'stop' or 'ok'}
