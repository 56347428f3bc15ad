export interface Item {
  _id: string;
  batch: string;
  at: number;
  place: { type: 'Point'; coordinates: [number, number] };
}

export const BATCH_SIZE = 40;

/** Documents that lie far apart in each order. */
export function batchOf(batch: string): Item[] {
  return Array.from({ length: BATCH_SIZE }, (_, n) => {
    const at = (n * 7919) % 1000;
    return { _id: `${at} ${batch}`, batch, at, place: { type: 'Point', coordinates: [at / 100, at / 50] } };
  });
}
