// Strategies live with the models that they change; kept here for readers of advice.

export * from "../models/strategy.ts";
