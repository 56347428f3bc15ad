import type { Suffixes } from './filter-suffixes.js';

/** One collection as `bsvc generate types` writes it. */
export interface CollectionTypes {
  /** A document as the service answers it. */
  Document: object;
  Insert: object;
  Update: object;
  /** Paths of Ref fields, each with the collection that it names. */
  Refs: object;
  /** Paths that lists are filtered and sorted by, with the values they are compared with. */
  Fields: object;
  /** Those that are not declared: `free.${string}`, all of a flexible collection, or none. */
  Open?: string;
}

/** A project as `bsvc generate types` writes it: `createClient<Project>()`. */
export type ProjectTypes<P> = { [N in keyof P]: CollectionTypes };

/** The type of every field where `bsvc generate types` has written none. */
// oxlint-disable-next-line typescript/no-explicit-any
type Loose = any;

/** Any collection with any field. */
export interface UntypedProject {
  [name: string]: {
    Document: { _id: string; [field: string]: Loose };
    Insert: { [field: string]: Loose };
    Update: { [field: string]: Loose };
    Refs: { [field: string]: string };
    Fields: { [field: string]: Loose };
    Open: string;
    Public: { _id: string; [field: string]: Loose };
  };
}

/** The collections that `collection()` reaches; `users` is behind `auth`. */
export type CollectionName<P> = Exclude<keyof P & string, 'users'>;

/** A part of the types of a collection; any object where the project says nothing of it. */
export type Part<P, N, K extends string> = N extends keyof P
  ? P[N] extends { [Key in K]: infer T }
    ? T
    : UntypedProject[string][K & keyof UntypedProject[string]]
  : UntypedProject[string][K & keyof UntypedProject[string]];

/** A field of a collection's documents. */
export type FieldName<P, N> = keyof Part<P, N, 'Document'> & string;
/** The path of a Ref field. */
export type RefPath<P, N> = keyof Part<P, N, 'Refs'> & string;

/** A value that a query can hold. */
export type Scalar = string | number | boolean | Date;

/** Names that are written out, not those of an index signature. */
type Named<F> = keyof { [K in keyof F as Record<never, never> extends Record<K, 1> ? never : K]: 1 } & string;
type Value<T> = unknown extends T ? Scalar : T;
type Ranged<T> = [T] extends [boolean] ? never : Value<T>;
type Matched<T> = unknown extends T ? string : [T] extends [string] ? string & T : never;
type At<F, K extends string> = F[K & keyof F];

/** The value of a parameter of a filter. The name of a field is that field, whatever it ends with. */
type Compared<F, Key extends string> = Key extends keyof F
  ? Value<F[Key]>
  : Key extends `${infer K}${Suffixes['ordered']}`
    ? Ranged<At<F, K>>
    : Key extends `${infer K}${Suffixes['list']}`
      ? readonly Value<At<F, K>>[]
      : Key extends `${infer K}${Suffixes['same']}`
        ? Value<At<F, K>>
        : Key extends `${infer K}${Suffixes['text']}`
          ? Matched<At<F, K>>
          : Key extends `${string}${Suffixes['area']}`
            ? string
            : boolean;

type Suffix = '' | Suffixes[keyof Suffixes];

/**
 * Conditions that documents have to meet, all of them: `{ status: 'open', views_gt: 3 }`. A field alone is an exact
 * match; with a suffix, as `_gt` or `_in` (a list), it is compared. Telling names from index signatures costs the
 * compiler more than all else: it is asked where there are such (`Open`).
 */
export type Filter<F, Open = string> = [Open] extends [never]
  ? Conditions<F, keyof F & string>
  : Conditions<F, Named<F>> & {
      [K in keyof F as Record<never, never> extends Record<K, 1> ? K : never]?:
        Scalar | readonly (Scalar | Alternative)[];
    };

/** One of several, as `or` lists them. */
type Alternative = { [parameter: string]: Scalar | readonly Scalar[] | undefined };

type Conditions<F, Names extends string> = { [Key in `${Names}${Suffix}`]?: Compared<F, Key> };

/** The filter of a collection. */
export type FilterOf<P, N> = AllOf<P, N> & {
  /** Alternatives, of which one has to match: `or: [{ status: 'open' }, { views_gt: 3 }]`. */
  or?: readonly AllOf<P, N>[];
};
type AllOf<P, N> = Filter<Part<P, N, 'Fields'>, Part<P, N, 'Open'>>;

type Path<F> = keyof F & string;
/** A field to sort by; `-views` descends. */
export type Sort<F> = Path<F> | `-${Path<F>}`;

/** The documents that `populate` puts in the place of ids, by path. */
type Targets<P, N, R extends string> = {
  [K in R]: Part<P, N, 'Refs'> extends { [Key in K]: infer C }
    ? C extends 'users'
      ? Part<P, 'users', 'Public'>
      : Part<P, C, 'Document'>
    : never;
};

type Populated<T, M> = [keyof M] extends [never]
  ? T
  : { [K in keyof T]: K extends keyof M ? Put<T[K], M[K]> : Within<T[K], Below<M, K>> };
type Below<M, K> = { [Key in keyof M as Key extends `${K & string}.${infer Rest}` ? Rest : never]: M[Key] };
type Within<T, M> = [keyof M] extends [never]
  ? T
  : T extends readonly (infer I)[]
    ? Within<I, M>[]
    : T extends object
      ? Populated<T, M>
      : T;
/** A document that is gone, or not the caller's to see, stays an id. */
type Put<T, D> = T extends readonly (infer I)[] ? Put<I, D>[] : T extends string ? T | D : T;

/** A document, or the fields of it that were asked for, with the documents that its Ref fields name. */
export type Shown<P, N, K extends string, R extends string> = Populated<
  [K] extends [never]
    ? Part<P, N, 'Document'>
    : Pick<Part<P, N, 'Document'>, Extract<K | '_id', keyof Part<P, N, 'Document'>>>,
  Targets<P, N, R>
>;
