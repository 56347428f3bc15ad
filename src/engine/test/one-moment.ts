import type { Engine } from '../index.js';

export interface Item {
  _id: string;
  n: number;
  state: string;
  isDeleted: boolean;
}

export const STATES = ['new', 'open', 'done'];
const PAGE = 100;

/** What a process sees of the store, asked in every way that answers how many there are. */
export interface Sight {
  /** By what was counted or listed: each list has the same for all ways when they are of one moment. */
  readonly answers: Record<string, number[]>;
}

/** Lists, counts and walks through pages of the same questions. */
export async function look(engine: Engine): Promise<Sight> {
  const items = engine.db('d').collection<Item>('items');
  const answers: Record<string, number[]> = {};
  for (const state of [...STATES, 'changed']) {
    const filter = { state };
    let pages = 0;
    for (let skip = 0, found = PAGE; found === PAGE; skip += PAGE) {
      found = (await items.find(filter).sort({ state: 1, n: 1 }).skip(skip).limit(PAGE).toArray()).length;
      pages += found;
    }
    answers[state] = [
      await items.countDocuments(filter),
      (await items.find(filter).toArray()).length,
      (await items.find(filter).sort({ n: 1 }).toArray()).length,
      pages,
    ];
  }
  const [group] = await items.aggregate<{ count: number }>([{ $count: 'count' }]).toArray();
  answers['all'] = [
    await items.countDocuments({}),
    await items.estimatedDocumentCount(),
    (await items.find().toArray()).length,
    group?.count ?? 0,
  ];
  return { answers };
}
