// Everything that the lab says, as one type: a language that leaves a sentence out does not compile.

import type * as en from "./en/index.ts";

type Wide<T> = T extends string
  ? string
  : T extends (...args: infer A) => string
    ? (...args: A) => string
    : { readonly [K in keyof T]: Wide<T[K]> };

export type Words = Wide<typeof en>;
