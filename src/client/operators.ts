/** A field that may be changed as one of type `T`; where nothing is declared, any. */
type Takes<Value, T> = unknown extends Value ? true : NonNullable<Value> extends T ? true : false;

/** The fields of a change that may be changed as ones of type `T`. */
type FieldsOf<Update, T> = { [K in keyof Update as Takes<Update[K], T> extends true ? K : never]: Update[K] };

/** What a list holds. */
type Item<Value> = NonNullable<Value> extends readonly (infer I)[] ? I : unknown;

type Lists<Update> = FieldsOf<Update, readonly unknown[]>;

/** Names of fields that may be cleared. */
type Optional<Update> = { [K in keyof Update]-?: null extends Update[K] ? K : never }[keyof Update];

/** Update operators, by the fields that each fits: they change what is stored at that moment. */
export interface Operators<Update> {
  /** Adds a number. */
  $inc?: { [K in keyof FieldsOf<Update, number>]?: number };
  /** Multiplies by a number. */
  $mul?: { [K in keyof FieldsOf<Update, number>]?: number };
  /** Sets what is smaller than the stored value. */
  $min?: { [K in keyof FieldsOf<Update, number | string | Date>]?: NonNullable<Update[K & keyof Update]> };
  /** Sets what is larger than the stored value. */
  $max?: { [K in keyof FieldsOf<Update, number | string | Date>]?: NonNullable<Update[K & keyof Update]> };
  /** Appends, or inserts at `$position`; `$slice` keeps that number of the first or, if negative, of the last. */
  $push?: {
    [K in keyof Lists<Update>]?:
      Item<Lists<Update>[K]> | { $each: readonly Item<Lists<Update>[K]>[]; $slice?: number; $position?: number };
  };
  /** Appends what is not there yet. */
  $addToSet?: {
    [K in keyof Lists<Update>]?: Item<Lists<Update>[K]> | { $each: readonly Item<Lists<Update>[K]>[] };
  };
  /** Takes out what is equal. */
  $pull?: { [K in keyof Lists<Update>]?: Item<Lists<Update>[K]> | { $in: readonly Item<Lists<Update>[K]>[] } };
  /** Clears optional fields. */
  $unset?: readonly Optional<Update>[];
}

/** True for a change that, made twice, changes twice. */
export function hasOperators(changes: object): boolean {
  return Object.keys(changes).some((name) => name.startsWith('$'));
}
