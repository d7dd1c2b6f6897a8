/// What the server does in one step, in Lua.
///
/// Each script gets the same first keys (meta, stream, nodes, entry, lease, wait) and arguments (number of the connection, a new epoch,
/// node, limit of the stream).
///
/// - `meta` has an epoch, the number of removals of tags, of prefixes and of all (`r`), that of the last one of all (`a`), of each tag
///   (`t:TAG`), of each prefix (`p:PREFIX`) and of the last prefix (`p`), and the lengths of the prefixes (`n`).
///   An entry or a lease with a stamp of another epoch, or from before a removal that
///   concerns it, counts as none. If it is evicted, the next epoch begins, and no entry counts.
/// - `nodes` has the last connection of each node, which `check` has written. What another one has sent is refused. It also has the
///   server's life, the last message that is kept of each earlier one (`was LIFE`), and the last one of a life whose loss a new epoch has
///   answered (`lost LIFE`). Behind each value stands the day.
/// - `stream` has the messages: who sends, the kind (`k` key, `t` tag, `p` prefix, `a` all, `l` loaded, `h` hello) and the text.
///
/// These three have no end of their own, so a server that evicts what has one leaves them. A hash of all caches has the days of their
/// last use: `check` returns the names of those that no node has used for four weeks, and the node deletes what they have.
enum RedisScripts: Int, CaseIterable {
    case fetch, store, renew, remove, discard, check

    var text: String { Self.common + "\n" + body }

    private static let common = """
        local function begin(e, r, a)
            redis.call('DEL', KEYS[1])
            redis.call('HSET', KEYS[1], 'e', e, 'r', r, 'a', a)
            return e, r, a
        end
        local function meta()
            local m = redis.pcall('HMGET', KEYS[1], 'e', 'r', 'a')
            if not m.err and m[1] and tonumber(m[2]) and tonumber(m[3]) then
                return m[1], tonumber(m[2]), tonumber(m[3])
            end
            return begin(ARGV[2], 0, 0)
        end
        local function stands(stamp, tags, e, a)
            local epoch, number = string.match(stamp, '^(.*):(%d+)$')
            local r = tonumber(number)
            if epoch ~= e or not r or r < a then return false end
            local at = 1
            while at <= #tags do
                local _, colon, count = string.find(tags, '^(%d+):', at)
                if not colon then return false end
                local last = redis.call('HGET', KEYS[1], 't:' .. string.sub(tags, colon + 1, colon + count))
                if last and r < tonumber(last) then return false end
                at = colon + count + 1
            end
            local p = redis.call('HGET', KEYS[1], 'p')
            if p and r < tonumber(p) then
                -- Behind `meta` and `e:` in the name of the entry.
                local key = string.sub(KEYS[4], #KEYS[1] - 1)
                for length in string.gmatch(redis.call('HGET', KEYS[1], 'n') or '', '%d+') do
                    local last = redis.call('HGET', KEYS[1], 'p:' .. string.sub(key, 1, length))
                    if last and r < tonumber(last) then return false end
                end
            end
            return true
        end
        local function tell(kind, text)
            local sent = redis.pcall('XADD', KEYS[2], 'MAXLEN', '~', ARGV[4], '*', 'n', ARGV[3], 'k', kind, 'v', text)
            if type(sent) == 'table' and sent.err then
                if not string.find(sent.err, 'WRONGTYPE') then error(sent.err) end
                redis.call('DEL', KEYS[2])
                sent = redis.call('XADD', KEYS[2], '*', 'n', ARGV[3], 'k', kind, 'v', text)
            end
            return sent
        end
        local function isLate()
            local session = redis.pcall('HGET', KEYS[3], ARGV[3])
            -- The day is no part of it.
            return type(session) ~= 'string' or string.match(session, '^%d+') ~= ARGV[1]
        end
        local function isAfter(x, y)
            local xt, xn = string.match(x, '^(%d+)-(%d+)$')
            local yt, yn = string.match(y, '^(%d+)-(%d+)$')
            if not xt or not yt then return false end
            if xt ~= yt then return tonumber(xt) > tonumber(yt) end
            return tonumber(xn) > tonumber(yn)
        end
        """

    private var body: String {
        switch self {
        // 5: the token of a new lease, 6: its milliseconds or nothing.
        case .fetch:
            """
            local e, r, a = meta()
            local v = redis.pcall('HMGET', KEYS[4], 's', 'g', 'p', 'x', 'n', 'c')
            if v.err then redis.call('DEL', KEYS[4]) end
            if not v.err and v[1] then
                if stands(v[1], v[2] or '', e, a) then
                    return {'entry', redis.call('PTTL', KEYS[4]), v[2], v[3], v[4], v[5], v[6]}
                end
                redis.call('DEL', KEYS[4])
            end
            if ARGV[6] == '' then return {'missing'} end
            local held = redis.pcall('GET', KEYS[5])
            if type(held) == 'table' then held = nil end
            -- What is made under a lease from before a removal is stored nowhere.
            if held and stands(string.match(held, ' (.*)$') or '', '', e, a) then
                redis.call('SET', KEYS[6], '1', 'PX', 2 * ARGV[6])
                return {'missing'}
            end
            local stamp = e .. ':' .. r
            redis.call('SET', KEYS[5], ARGV[5] .. ' ' .. stamp, 'PX', ARGV[6])
            return {'lease', stamp}
            """
        // 5: the token and the stamp of the lease, or nothing; 6: the stamp; 7: the key, 8: milliseconds, 9: the payload, 10: tags; then more fields.
        case .store:
            """
            if isLate() then return 'late' end
            local e, r, a = meta()
            local stored = 'yes'
            if ARGV[5] ~= '' then
                if redis.call('GET', KEYS[5]) ~= ARGV[5] then return 'no' end
                if not stands(ARGV[6], ARGV[10], e, a) then stored = 'no' end
            end
            -- A script may write all it wants once it has written: the first one is refused if the memory is full.
            redis.call('HSET', KEYS[1], 'r', r)
            redis.call('DEL', KEYS[5])
            local isAwaited = redis.call('DEL', KEYS[6]) == 1
            if stored == 'yes' then
                redis.call('DEL', KEYS[4])
                local time = redis.call('TIME')
                local now = time[1] * 1000 + math.floor(time[2] / 1000)
                redis.call('HSET', KEYS[4], 's', e .. ':' .. r, 'd', string.format('%.0f', now + ARGV[8]),
                    'g', ARGV[10], 'p', ARGV[9], unpack(ARGV, 11))
                redis.call('PEXPIRE', KEYS[4], ARGV[8])
            end
            local kind = ARGV[5] == '' and 'k' or isAwaited and 'l'
            return kind and stored .. ' ' .. tell(kind, ARGV[7]) or stored
            """
        // 5: the token and the stamp, 6: milliseconds or nothing, 7: the key.
        case .renew:
            """
            if redis.call('GET', KEYS[5]) ~= ARGV[5] then return 'no' end
            if ARGV[6] ~= '' then
                redis.call('PEXPIRE', KEYS[5], ARGV[6])
            else
                redis.call('DEL', KEYS[5])
                if redis.call('DEL', KEYS[6]) == 1 then tell('l', ARGV[7]) end
            end
            return 'yes'
            """
        // 5: the checksum of the entry.
        case .discard:
            """
            if (redis.call('HGET', KEYS[4], 'c') or '') == ARGV[5] then redis.call('DEL', KEYS[4]) end
            return 'yes'
            """
        // From 5 on: the kind and the text of each removal. The keys from 4 on are the entry, lease and wait of each key.
        case .remove:
            """
            if isLate() then return 'late' end
            -- A full server lets a script write that has written something which takes no memory.
            redis.call('PERSIST', KEYS[1])
            local e, r, a = meta()
            local key, last = 4, nil
            for i = 5, #ARGV, 2 do
                if ARGV[i] == 'k' then
                    redis.call('DEL', KEYS[key], KEYS[key + 1], KEYS[key + 2])
                    key = key + 3
                elseif ARGV[i] == 't' then
                    r = r + 1
                    redis.call('HSET', KEYS[1], 'r', r, 't:' .. ARGV[i + 1], r)
                elseif ARGV[i] == 'p' then
                    r = r + 1
                    local lengths = redis.call('HGET', KEYS[1], 'n') or ' '
                    if not string.find(lengths, ' ' .. #ARGV[i + 1] .. ' ', 1, true) then
                        lengths = lengths .. #ARGV[i + 1] .. ' '
                    end
                    if #lengths > 100 then
                        -- So many prefixes are as bad to look for as all.
                        e, r, a = begin(e, r, r)
                    else
                        redis.call('HSET', KEYS[1], 'r', r, 'p', r, 'n', lengths, 'p:' .. ARGV[i + 1], r)
                    end
                else
                    e, r, a = begin(e, r + 1, r + 1)
                end
                last = tell(ARGV[i], ARGV[i + 1])
            end
            -- Of too many tags and prefixes the older half is forgotten, and with it all entries from before.
            if redis.call('HLEN', KEYS[1]) > 10003 then
                local marks, numbers = redis.call('HGETALL', KEYS[1]), {}
                for i = 1, #marks, 2 do
                    if string.sub(marks[i], 2, 2) == ':' then numbers[#numbers + 1] = tonumber(marks[i + 1]) or 0 end
                end
                table.sort(numbers)
                local youngest = numbers[math.floor(#numbers / 2)]
                for i = 1, #marks, 2 do
                    if string.sub(marks[i], 2, 2) == ':' and (tonumber(marks[i + 1]) or 0) <= youngest then
                        redis.call('HDEL', KEYS[1], marks[i])
                    end
                end
                redis.call('HSET', KEYS[1], 'a', math.max(a, youngest))
            end
            return last and 'yes ' .. last or 'yes'
            """
        // 5 and 6: a message that this node knows, or nothing, and the life of the server that had it; 7: the name of the cache. The key 4 has
        // the days on which caches were used.
        case .check:
            """
            redis.call('PERSIST', KEYS[3])
            if type(redis.pcall('HLEN', KEYS[3])) == 'table' then redis.call('DEL', KEYS[3]) end
            -- The first word of a field.
            local function fact(field)
                local value = redis.call('HGET', KEYS[3], field)
                return value and string.match(value, '^%S+') or nil
            end
            -- One of an earlier connection may come late.
            if (tonumber(fact(ARGV[3]) or '') or 0) > tonumber(ARGV[1]) then return 'late' end
            local day = math.floor(tonumber(redis.call('TIME')[1]) / 86400)
            local info = redis.pcall('INFO', 'replication')
            local life = type(info) == 'string' and string.match(info, 'master_replid:(%w+)') or ''
            local before = fact(' life')
            if before and before ~= life then
                -- What its stream has now is what it has kept of the life before.
                local last = redis.pcall('XREVRANGE', KEYS[2], '+', '-', 'COUNT', 1)
                local kept = not last.err and #last == 1 and last[1][1] or '0-0'
                redis.call('HSET', KEYS[3], ' was ' .. before, kept .. ' ' .. day)
            end
            redis.call('HSET', KEYS[3], ' life', life .. ' ' .. day)
            local found = 'there'
            if ARGV[5] ~= '' then
                local known = redis.pcall('XRANGE', KEYS[2], ARGV[5], ARGV[5])
                local kept, lost = fact(' was ' .. ARGV[6]), fact(' lost ' .. ARGV[6])
                if life ~= '' and life == ARGV[6] or kept and not isAfter(ARGV[5], kept) then
                    if known.err or #known == 0 then found = 'gone' end
                elseif lost and not isAfter(ARGV[5], lost) then
                    -- Another node knew it too, and a new epoch has begun.
                    found = 'gone'
                else
                    -- The server is back at an earlier moment: what was removed or replaced since is there again.
                    begin(ARGV[2], 0, 0)
                    tell('a', '')
                    redis.call('HSET', KEYS[3], ' lost ' .. ARGV[6], ARGV[5] .. ' ' .. day)
                    found = 'lost'
                end
            end
            if redis.call('HLEN', KEYS[3]) > 100 then
                local nodes = redis.call('HGETALL', KEYS[3])
                for i = 1, #nodes, 2 do
                    local last = tonumber(string.match(nodes[i + 1], ' (%d+)$') or '')
                    -- Each node that runs comes once a day.
                    if not last or last + 2 < day then redis.call('HDEL', KEYS[3], nodes[i]) end
                end
            end
            redis.call('HSET', KEYS[3], ARGV[3], ARGV[1] .. ' ' .. day)
            local reply = {found, life}
            if redis.pcall('HGET', KEYS[4], ARGV[7]) ~= tostring(day) then
                local uses = redis.pcall('HGETALL', KEYS[4])
                if uses.err then
                    redis.call('DEL', KEYS[4])
                    uses = {}
                end
                redis.call('HSET', KEYS[4], ARGV[7], day)
                for i = 1, #uses, 2 do
                    local last = tonumber(uses[i + 1])
                    if last and last + 28 < day then reply[#reply + 1] = uses[i] end
                end
            end
            return reply
            """
        }
    }
}
