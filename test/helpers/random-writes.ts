import { ObjectId } from 'bson';
import type { Random } from './random.js';
import { ITEMS, MODEL, type ModelState, type ModelWrite, type ModelWriter } from './write-model.js';

/** Writes of one request. */
export interface Chosen {
  writes: ModelWrite[];
  as: 'one' | 'batch' | 'bulk' | 'matching';
  /** The method of an update; the team of those that match. */
  more: string;
}

/** Documents of a collection before more of them go than come. */
const MANY = 14;
const TEAMS = ['a', 'b', 'c'];
const MISSING = 'f'.repeat(24);
const newId = (): string => new ObjectId().toHexString();

/** A request by chance, mostly one that the model takes. */
export function chooseWrites(
  random: Random,
  state: ModelState,
  writer: ModelWriter,
  users: readonly [string, string],
): Chosen {
  const choose = new Chooser(random, state, writer, users);
  const kind = random.below(20);
  if (kind < 4) {
    const some = Array.from({ length: 1 + random.below(3) }, () => choose.write()).filter(({ op }) => op !== 'remove');
    const writes = random.chance(0.3) ? [...choose.renamed(), ...some] : some;
    if (writes.length > 0) return { writes: writes.map(({ isFresh: _, ...write }) => write), as: 'batch', more: '' };
  }
  const name = random.pick(ITEMS);
  if (kind === 4) {
    // One of them is anything: of several faults the first in the list is not always the one that is told.
    const odd = random.below(3);
    // They bring no ids of their own.
    const writes = [0, 1, 2].map((at) => ({ ...choose.insert(name, at === odd ? undefined : 0), id: newId() }));
    return { writes, as: 'bulk', more: '' };
  }
  if (kind === 5 && writer === null) {
    const team = random.pick(TEAMS);
    const matching = Object.values(state[name]!).filter((each) => !each.isDeleted && each.team === team);
    const body = random.pick<object>([
      { $inc: { n: 1 } },
      { state: 'closed' },
      { level: 5 },
      { title: 'same' },
      { n: 'x' },
    ]);
    const op = random.pick<ModelWrite['op']>(['update', 'update', 'trash', 'remove']);
    const writes = matching.map(({ _id }): ModelWrite => ({
      op,
      collection: name,
      id: _id,
      ...(op === 'update' && { body: body as Record<string, unknown> }),
    }));
    if (writes.length > 0) return { writes, as: 'matching', more: team };
  }
  return { writes: [choose.write()], as: 'one', more: random.pick(['put', 'patch']) };
}

class Chooser {
  constructor(
    private readonly random: Random,
    private readonly state: ModelState,
    private readonly writer: ModelWriter,
    private readonly users: readonly [string, string],
  ) {}

  write(): ModelWrite {
    const { random } = this;
    const all = [...ITEMS, ...ITEMS, 'boards', 'boards', 'members'];
    // Of those that only the project writes there is little to learn as anybody else.
    const open = all.filter((name) => MODEL[name]!.rules ?? MODEL[name]!.owner);
    const collection = random.pick(this.writer === null || random.chance(0.05) ? all : open);
    const ids = Object.keys(this.state[collection]!);
    if (this.random.chance(0.1) && collection !== 'boards') return this.upsert(collection);
    const isNew = ids.length < 2 || random.chance(ids.length > MANY ? 0.05 : 0.35);
    if (isNew) return this.insert(collection);
    const id = random.chance(0.03) ? MISSING : random.pick(ids);
    const isDeleted = this.state[collection]![id]?.isDeleted;
    const usual = isDeleted
      ? (['recover', 'recover', 'remove'] as const)
      : (['update', 'update', 'update', 'trash'] as const);
    const any = ['update', 'trash', 'remove', 'recover'] as const;
    const op = random.chance(ids.length > MANY ? 0.4 : 0.1)
      ? ids.length > MANY
        ? 'remove'
        : random.pick(any)
      : random.pick(usual);
    const isKnown = this.state[collection]![id] !== undefined && random.chance(0.2);
    return {
      ...{ op, collection, id },
      ...(op === 'update' && { body: this.change(collection, id) }),
      ...(isKnown && { isFresh: random.chance(0.7) }),
    };
  }

  insert(collection: string, faults = 0.04): ModelWrite {
    const { random } = this;
    const id = random.chance(faults) ? (Object.keys(this.state[collection]!)[0] ?? newId()) : newId();
    if (collection === 'boards') return { op: 'insert', collection, id, body: { name: this.text(faults) } };
    if (collection === 'members') return { op: 'insert', collection, id, body: this.member(faults) };
    const body: Record<string, unknown> = {
      title: this.text(faults),
      ...(random.chance(0.8) && { team: random.pick(TEAMS) }),
    };
    for (const name of ['n', 'tags', 'slug', 'state', 'level', 'board', 'also', 'kept', 'by']) {
      if (random.chance(0.3)) body[name] = this.value(name, faults);
    }
    if (collection === 'owned' && random.chance(0.3)) body.owner = this.value('owner', faults);
    if (random.chance(faults)) body.zzz = 1;
    return { op: 'insert', collection, id, body };
  }

  /** Mostly by the key of a document that is there. */
  private upsert(collection: string): ModelWrite {
    const { random } = this;
    const { body, id } = this.insert(collection, 0.02);
    const by = collection === 'members' ? ['team', 'user'] : ['slug'];
    const there = Object.values(this.state[collection]!).filter((each) => by.every((name) => each[name] !== undefined));
    const meant = random.chance(0.6) && there.length > 0 ? random.pick(there) : null;
    for (const name of by) body![name] = meant ? meant[name] : (body![name] ?? this.value(name, 0.02));
    if (random.chance(0.03)) delete body![by[0]!];
    if (random.chance(0.15)) delete body!.title;
    return { op: 'upsert', collection, id, by, body: body! };
  }

  /** A document gets another key, or is trashed or taken back, and others by the old key and the new one. */
  renamed(): ModelWrite[] {
    const { random } = this;
    const collection = random.pick(ITEMS);
    const there = Object.values(this.state[collection]!).filter(({ slug }) => slug !== undefined);
    if (there.length === 0) return [];
    const { _id: id, slug, isDeleted } = random.pick(there);
    const key = random.chance(0.3) ? random.pick(there).slug : this.value('slug', 0);
    const first: ModelWrite = isDeleted
      ? { op: 'recover', collection, id }
      : random.chance(0.2)
        ? { op: 'trash', collection, id }
        : { op: 'update', collection, id, body: { slug: key } };
    const upserts = Array.from({ length: 1 + random.below(3) }, () => {
      const upsert = this.upsert(collection);
      return { ...upsert, body: { ...upsert.body, slug: random.pick([slug, key]) } };
    });
    return [first, ...upserts];
  }

  private member(faults: number): Record<string, unknown> {
    const { random } = this;
    const role = random.chance(faults) ? 'king' : random.pick(['viewer', 'editor', 'owner']);
    return { team: random.pick(TEAMS), user: random.pick(this.users), role };
  }

  private change(collection: string, id: string): Record<string, unknown> {
    const { random } = this;
    if (collection === 'boards') return { name: this.text() };
    if (collection === 'members')
      return random.chance(0.7) ? { role: this.member(0.04).role } : { team: random.pick(TEAMS) };
    const body: Record<string, unknown> = {};
    const names = [
      'title',
      'n',
      'tags',
      'slug',
      'state',
      'level',
      'team',
      'board',
      'also',
      'kept',
      'by',
      ...(collection === 'owned' ? ['owner', 'owner'] : []),
    ];
    const stored = this.state[collection]![id];
    for (let count = 1 + random.below(3); count > 0; count--) {
      const name = random.pick(names);
      if (random.chance(0.3)) this.operate(body, name);
      else if (name === 'by' || name === 'owner') body[name] = random.pick(this.users);
      else
        body[name] = random.chance(0.15)
          ? (stored?.[name] ?? null)
          : random.chance(0.1) && name !== 'owner'
            ? null
            : this.value(name);
    }
    if (random.chance(0.02)) body.zzz = 1;
    if (random.chance(0.03)) body.isDeleted = random.chance(0.5);
    if (random.chance(0.01)) return {};
    return body;
  }

  private operate(body: Record<string, unknown>, name: string): void {
    const { random } = this;
    const add = (operator: string, on: string, operand: unknown): void => {
      body[operator] = { ...(body[operator] as object | undefined), [on]: operand };
    };
    switch (random.below(6)) {
      case 0:
        return add('$inc', random.pick(['n', 'n', 'n', 'level', name]), random.pick([1, -1, 3]));
      case 1:
        return add('$max', 'n', random.below(11));
      case 2:
        return add('$push', random.chance(0.9) ? 'tags' : name, random.pick(['x', 'y', 'z']));
      case 3:
        return add('$addToSet', 'tags', random.pick(['x', 'y', 'z', 'v']));
      case 4:
        return add('$pull', 'tags', random.pick(['x', 'y']));
      default:
        body.$unset = [...((body.$unset as string[]) ?? []), name];
    }
  }

  private text(faults = 0.04): string {
    return this.random.chance(faults) ? 'too long' : this.random.pick(['one', 'two', 'three', 'four', 'same']);
  }

  private value(name: string, faults = 0.06): unknown {
    const { random } = this;
    if (random.chance(faults)) return random.pick<unknown>([-1, 'x'.repeat(7), {}, ['x', 'x'], true]);
    const own = this.writer ?? this.users[0];
    const boards = Object.keys(this.state.boards!);
    switch (name) {
      case 'title':
        return this.text(faults);
      case 'n':
        return random.below(10);
      case 'level':
        return random.below(4);
      case 'tags':
        return ['x', 'y', 'z'].slice(random.below(4));
      case 'slug':
        return `s${random.below(30)}`;
      case 'state':
        return random.pick(['open', 'closed']);
      case 'team':
        return random.pick(TEAMS);
      case 'user':
        return random.pick(this.users);
      case 'by':
      case 'owner':
        return random.chance(faults) ? random.pick(this.users) : own;
      default:
        return boards.length === 0 || random.chance(0.05) ? MISSING : random.pick(boards);
    }
  }
}
